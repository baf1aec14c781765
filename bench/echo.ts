/**
 * Short exchanges on loopback between separate processes: from connect to the first echo of 64 bytes over a new
 * connection, and round trips of 64 bytes on an open one, one at a time. Ours is the transport without the products,
 * with a pinned key, over a byte stream and as CoAP requests. TLS makes a full handshake each time.
 */
import { Contenders } from './contenders.ts';
import { Figures } from './figures.ts';
import { select } from './peers.ts';
import { program, withChildren } from './processes/parent.ts';
import { percentile, type Report } from './report.ts';

const ECHOES = 1000;
const CONNECTIONS = 15;
const ROUNDS = 7;
const QUICK_ROUNDS = 3;
const WARM_UP = 2;

/** Over a byte stream, like the peers, and as CoAP requests. */
export const ours = [program('ours'), { ...program('ours', JSON.stringify({ over: 'coap' })), name: 'ours-coap' }];

export async function run(progress: (step: string) => void, options: { peers?: string; quick?: boolean }): Promise<Report> {
  const rounds = options.quick === true ? QUICK_ROUNDS : ROUNDS;
  const { peers, absent } = select(options.peers);
  const figures = new Figures();
  const missing = await withChildren(async (start) => {
    const contenders = await Contenders.start(start, { host: '127.0.0.1' }, ours, peers, absent);
    for (let round = 0; round < WARM_UP + rounds; round++) {
      progress(`round ${round + 1} of ${WARM_UP + rounds}`);
      await contenders.each(async ({ name, near, address }) => {
        const first: number[] = [];
        for (let index = 0; index < CONNECTIONS; index++) first.push(await near.call<number>('firstEcho', { address }));
        const times = await near.call<number[]>('echo', { count: ECHOES });
        if (round < WARM_UP) return;
        figures.add('first-echo', name, percentile(first, 50));
        figures.add('echo-64-p50', name, percentile(times, 50));
        figures.add('echo-64-p99', name, percentile(times, 99));
      });
    }
    return contenders.absent;
  });
  return {
    bench: 'echo',
    about: 'set-up to first echo of a new connection, and round trips of 64 bytes, on loopback, separate processes.',
    rows: [figures.row('first-echo', 'ms', 'lower'), figures.row('echo-64-p50', 'µs', 'lower'), figures.row('echo-64-p99', 'µs', 'lower')],
    goals: [
      { case: 'echo-64-p50', peer: 'tcp', atMost: 1.1 },
      { case: 'first-echo', peer: 'tls', atMost: 1 },
    ],
    absent: missing,
  };
}
