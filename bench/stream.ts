/**
 * One bulk stream from client to device over loopback UDP in packets of 1,200 bytes, in separate processes: directly, and through the base
 * station. The peer is a bare sender and a bare receiver of datagrams of the same size: no encryption, no acknowledgement, nothing kept, and
 * what the receiver did not keep up with does not count.
 */
import { withChildren } from './processes/parent.ts';
import { onStage } from './processes/stage.ts';
import { type Report, spread } from './report.ts';

const SIZE = 1200;
const BYTES = 64 * 1024 * 1024;
const BARE_MILLISECONDS = 800;
const ROUNDS = 5;
const WARM_UP = 1;

export async function run(progress: (step: string) => void): Promise<Report> {
  const rates = { direct: [] as number[], relay: [] as number[], bare: [] as number[] };
  await withChildren(async (start) => {
    const [sender, receiver] = [start('bare-sender'), start('bare-receiver')];
    const port = await receiver.call<number>('bind');
    await onStage(start, async ({ client }) => {
      for (let round = 0; round < WARM_UP + ROUNDS; round++) {
        progress(`round ${round + 1} of ${WARM_UP + ROUNDS}`);
        const direct = await client.call<number>('stream', { name: 'direct', bytes: BYTES });
        const relay = await client.call<number>('stream', { name: 'relay', bytes: BYTES });
        await sender.call('send', { port, size: SIZE, milliseconds: BARE_MILLISECONDS });
        const bare = await receiver.call<number>('rate');
        if (round < WARM_UP) continue;
        rates.direct.push(direct);
        rates.relay.push(relay);
        rates.bare.push(bare);
      }
    });
  });
  const row = (name: 'direct' | 'relay') => ({
    case: `${name}-${SIZE}`,
    unit: 'MB/s',
    better: 'higher' as const,
    ours: spread(rates[name]),
    peers: { 'bare-dgram': spread(rates.bare) },
  });
  return {
    bench: 'stream',
    about: 'one bulk stream of 64 MiB client → device on loopback, separate processes, beside bare datagrams of the same size.',
    rows: [row('direct'), row('relay')],
    goals: [{ case: `direct-${SIZE}`, peer: 'bare-dgram', atLeast: 0.28 }],
  };
}
