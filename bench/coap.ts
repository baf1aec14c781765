/**
 * Round trips of a CoAP GET with a four-byte answer, one request at a time and 32 in flight, from client to device:
 * directly, and through the base station. The peer is a client and a server of the `coap` package on plain UDP, without
 * encryption.
 *
 * `under-upload`: one request at a time on a connection that also carries an endless stream to the device. Its peer
 * `idle` is the same without the stream, in the same round.
 */
import { type Child, withChildren } from './processes/parent.ts';
import { onStage } from './processes/stage.ts';
import { percentile, type Report, type Row, spread } from './report.ts';

const ROUNDS = 7;
const QUICK_ROUNDS = 3;
const WARM_UP = 2;
/** Requests of one round, by the number in flight. */
const LOADS = [
  { flight: 1, count: 600 },
  { flight: 32, count: 4000 },
];
const PERCENTILES = [50, 99];

/** Requests of one round beside an upload, which begins `settle` ms before them. */
const UNDER_UPLOAD = { flight: 1, count: 300, settle: 300 };

type Contender = 'direct' | 'relay' | 'coap';

export async function run(progress: (step: string) => void, { quick = false }: { readonly quick?: boolean }): Promise<Report> {
  const counted = quick ? QUICK_ROUNDS : ROUNDS;
  const rows: Row[] = [];
  await withChildren(async (start) => {
    const [peer, server] = [start('coap-client'), start('coap-server')];
    const port = await server.call<number>('listen');
    await onStage(start, async ({ client }) => {
      for (const { flight, count } of LOADS) {
        progress(`${flight} in flight`);
        const times = await rounds(client, peer, port, { flight, count, counted });
        rows.push(...(['direct', 'relay'] as const).flatMap((name) => PERCENTILES.map((p) => row(name, flight, p, times))));
      }
      progress('under upload');
      rows.push(...(await underUpload(client, counted)));
    });
  });
  return {
    bench: 'coap',
    about:
      'round-trip time of a CoAP GET, one request at a time and 32 in flight; one at a time beside a bulk upload on the same connection.',
    rows,
    goals: [{ case: 'under-upload-p99', peer: 'idle', atMost: 3 }],
  };
}

interface Load {
  readonly flight: number;
  readonly count: number;
  /** Counted rounds. */
  readonly counted: number;
}

/** Round-trip times of each round, by contender. */
async function rounds(client: Child, peer: Child, port: number, { flight, count, counted }: Load): Promise<Record<Contender, number[][]>> {
  const times: Record<Contender, number[][]> = { direct: [], relay: [], coap: [] };
  for (let round = 0; round < WARM_UP + counted; round++) {
    const direct = await client.call<number[]>('requests', { name: 'direct', count, flight });
    const relay = await client.call<number[]>('requests', { name: 'relay', count, flight });
    const coap = await peer.call<number[]>('requests', { port, count, flight });
    if (round < WARM_UP) continue;
    times.direct.push(direct);
    times.relay.push(relay);
    times.coap.push(coap);
  }
  return times;
}

function row(name: 'direct' | 'relay', flight: number, percent: number, times: Record<Contender, number[][]>): Row {
  const of = (contender: Contender) => spread(times[contender].map((round) => percentile(round, percent)));
  return { case: `${name}-${flight}-p${percent}`, unit: 'µs', better: 'lower', ours: of(name), peers: { coap: of('coap') } };
}

/** Returns the rows of requests beside an upload. Their peer is the same without the upload. */
async function underUpload(client: Child, counted: number): Promise<Row[]> {
  const { flight, count, settle } = UNDER_UPLOAD;
  const [idle, busy] = [[] as number[][], [] as number[][]];
  for (let round = 0; round < WARM_UP + counted; round++) {
    const ask = { name: 'direct', count, flight };
    const alone = await client.call<number[]>('requests', ask);
    await client.call('beginUpload', { name: 'direct' });
    await new Promise((resolve) => setTimeout(resolve, settle));
    const beside = await client.call<number[]>('requests', ask);
    await client.call('endUpload', { name: 'direct' });
    if (round < WARM_UP) continue;
    idle.push(alone);
    busy.push(beside);
  }
  return PERCENTILES.map((p) => {
    const of = (rounds: readonly number[][]) => spread(rounds.map((round) => percentile(round, p)));
    return { case: `under-upload-p${p}`, unit: 'µs', better: 'lower', ours: of(busy), peers: { idle: of(idle) } };
  });
}
