/**
 * One bulk stream over loopback, in separate processes.
 *
 * - `products-direct`, `products-relay`: client → device with the products, directly and through the base station;
 * - `direct-1452`: our transport without the products, and processor time of both ends;
 * - `direct-mtu`: the same with packets of up to 65,000 bytes, which only loopback carries whole.
 *
 * Our own contenders begin with packets of 1,200 bytes and probe for the size that the path carries: 1,452, and 65,000
 * in `direct-mtu`.
 *
 * Beside them: a bare sender and a bare receiver of datagrams of the same size, without encryption, acknowledgement or
 * buffering; datagrams that the receiver misses do not count. And the other transports, each with its own packet size.
 */
import { Contenders, type Pair } from './contenders.ts';
import { Figures } from './figures.ts';
import { select } from './peers.ts';
import { type Child, program, withChildren } from './processes/parent.ts';
import { onStage } from './processes/stage.ts';
import type { Report } from './report.ts';

const ETHERNET_SIZE = 1452;
const LOOPBACK_SIZE = 65_000;
const BYTES = 64 * 1024 * 1024;
/** Bytes of the first, uncounted round of a peer, and seconds that a later round takes. */
const FIRST_BYTES = 4 * 1024 * 1024;
const SECONDS = 0.4;
const BARE_MILLISECONDS = 500;
const ROUNDS = 5;
/** Rounds in which V8 optimizes wasm and JavaScript. The first 100 MB or so cost a quarter more per gigabyte. */
const WARM_UP = 4;

const PRODUCTS = ['products-direct', 'products-relay'];

/** Our contenders, and the case of each. */
const cases: Readonly<Record<string, string>> = { 'ours-1452': `direct-${ETHERNET_SIZE}`, 'ours-mtu': 'direct-mtu' };

export async function run(progress: (step: string) => void, options: { peers?: string }): Promise<Report> {
  const { peers, absent } = select(options.peers);
  const ours = [ETHERNET_SIZE, LOOPBACK_SIZE].map((maxPacketSize, index) => ({
    ...program('ours', JSON.stringify({ maxPacketSize })),
    name: Object.keys(cases)[index] as string,
  }));
  const figures = new Figures();
  const missing = await withChildren(async (start) => {
    const contenders = await Contenders.start(start, { host: '127.0.0.1' }, ours, peers, absent);
    const [sender, receiver] = [start('bare-sender'), start('bare-receiver')];
    const port = await receiver.call<number>('bind');
    const bulk = new Bulk(figures);
    await onStage(start, async ({ client }) => {
      for (let round = 0; round < WARM_UP + ROUNDS; round++) {
        progress(`round ${round + 1} of ${WARM_UP + ROUNDS}`);
        const counts = round >= WARM_UP;
        await products(client, figures, counts);
        await bare(sender, receiver, port, figures, counts);
        await contenders.each((pair) => bulk.measure(pair, counts));
      }
    });
    return contenders.absent;
  });
  return {
    bench: 'stream',
    about: 'one bulk stream on loopback, separate processes; processor time is of one end.',
    rows: [
      ...[...PRODUCTS, ...Object.values(cases)].map((name) => figures.row(name, 'MB/s', 'higher')),
      ...['send', 'receive'].map((end) => figures.row(`direct-${ETHERNET_SIZE}-cpu-${end}`, 's/GB', 'lower')),
    ],
    goals: [
      { case: 'products-direct', peer: 'bare-dgram', atLeast: 0.28 },
      { case: `direct-${ETHERNET_SIZE}`, peer: 'bare-dgram', atLeast: 0.57 },
      { case: `direct-${ETHERNET_SIZE}`, peer: 'udx', atLeast: 1.4 },
      { case: 'direct-mtu', peer: 'libp2p-tcp', atLeast: 1.6 },
      { case: `direct-${ETHERNET_SIZE}-cpu-send`, peer: 'udx', atMost: 1 },
      { case: `direct-${ETHERNET_SIZE}-cpu-receive`, peer: 'udx', atMost: 1 },
    ],
    absent: missing,
  };
}

async function products(client: Child, figures: Figures, counts: boolean): Promise<void> {
  for (const name of ['direct', 'relay']) {
    const rate = await client.call<number>('stream', { name, bytes: BYTES });
    if (counts) figures.add(`products-${name}`, 'ours', rate);
  }
}

async function bare(sender: Child, receiver: Child, port: number, figures: Figures, counts: boolean): Promise<void> {
  await sender.call('send', { port, size: ETHERNET_SIZE, milliseconds: BARE_MILLISECONDS });
  const rate = await receiver.call<number>('rate');
  if (counts) for (const name of [...PRODUCTS, `direct-${ETHERNET_SIZE}`]) figures.add(name, 'bare-dgram', rate);
}

/** Bulk transfers of the contenders, each as long as its rate in the round before suggests. */
class Bulk {
  readonly #figures: Figures;
  readonly #bytes = new Map<string, number>();

  constructor(figures: Figures) {
    this.#figures = figures;
  }

  async measure({ name, near, far }: Pair, counts: boolean): Promise<void> {
    const bytes = this.#bytes.get(name) ?? FIRST_BYTES;
    const [sent, received] = [await near.call<number>('cpu'), await far.call<number>('cpu')];
    const rate = await near.call<number>('bulk', { bytes });
    const perGigabyte = 1e9 / bytes;
    const send = ((await near.call<number>('cpu')) - sent) * perGigabyte;
    const receive = ((await far.call<number>('cpu')) - received) * perGigabyte;
    this.#bytes.set(name, Math.max(FIRST_BYTES / 4, Math.round(rate * 1e6 * SECONDS)));
    if (counts) this.#add(name, rate, send, receive);
  }

  /** Adds figures. A peer stands beside ours in every case, since its packets do not depend on the case. */
  #add(name: string, rate: number, send: number, receive: number): void {
    const ours = cases[name];
    for (const of of ours === undefined ? Object.values(cases) : [ours]) {
      const contender = ours === undefined ? name : 'ours';
      this.#figures.add(of, contender, rate);
      if (of !== `direct-${ETHERNET_SIZE}`) continue;
      this.#figures.add(`${of}-cpu-send`, contender, send);
      this.#figures.add(`${of}-cpu-receive`, contender, receive);
    }
  }
}
