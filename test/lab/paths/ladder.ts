/**
 * A ladder of links from good to very bad, each with a client at its near end; base station and device are behind the
 * far end. On every rung, relayed or direct: the connection survives, every byte of a transfer arrives there and back,
 * and requests beside it are answered.
 *
 * Bursts are counted in packets: when 40 in a row are lost and a sender only probes, the silence takes half a minute. A
 * connection that was dialed directly, to an address, and cannot ask a base station may then end without a sign of life
 * (PROTOCOL.md §5): there is none on the last rung.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import type { Child } from '../../../bench/processes/parent.ts';
import { percentile } from '../../../bench/report.ts';
import { EmulatedLink } from '../emulator.ts';
import { record } from '../figures.ts';
import type { LinkOptions } from '../link.ts';
import type { History } from './echo.ts';
import { type Home, STATION_ADDRESS } from './internet.ts';
import type { Lab, LabDevice } from './products.ts';

type Way = 'relayed' | 'direct';
const WAYS: readonly Way[] = ['relayed', 'direct'];

export interface Rung {
  readonly name: string;
  readonly link: LinkOptions;
  readonly ways: readonly Way[];
  /** Bytes of the transfer, each way. */
  readonly bytes: number;
  /** ms: goal of 95 % of the requests. */
  readonly p95: number;
}

/** Named by Mbit/s, ms there and back, ms of jitter each way, percent of loss and packets lost in a row. */
export const RUNGS: readonly Rung[] = [
  { name: '100 Mbit/s, 10 ms', link: { rate: 100, delay: 5 }, ways: WAYS, bytes: 4_000_000, p95: 300 },
  {
    name: '20 Mbit/s, 30 ms, jitter 10, 1 %',
    link: { rate: 20, delay: 15, jitter: 10, loss: 1, queue: 100_000 },
    ways: WAYS,
    bytes: 2_000_000,
    p95: 500,
  },
  {
    name: '5 Mbit/s, 100 ms, jitter 30, 3 % in bursts of 3',
    link: { rate: 5, delay: 50, jitter: 30, loss: 3, burst: 3, queue: 80_000 },
    ways: WAYS,
    bytes: 500_000,
    p95: 1_500,
  },
  {
    name: '1 Mbit/s, 400 ms, jitter 80, 10 % in bursts of 10',
    link: { rate: 1, delay: 200, jitter: 80, loss: 10, burst: 10, queue: 60_000 },
    ways: WAYS,
    bytes: 150_000,
    p95: 5_000,
  },
  {
    name: '256 kbit/s, 800 ms, jitter 150, 25 % in bursts of 40',
    link: { rate: 0.256, delay: 400, jitter: 150, loss: 25, burst: 40, queue: 32_000 },
    ways: ['relayed'],
    bytes: 60_000,
    p95: 45_000,
  },
];
/**
 * With it the first bursts of 40 begin after the 70th packet there and the 42nd back: after the connect, and before the
 * end.
 */
const SEED = 88;
const LOCAL_PORT = 5592;
/** ms between a request's answer and the next one. */
const PAUSE = 300;
/** Connects before a rung is given up. */
const TRIES = 5;

export class Ladder {
  readonly #lab: Lab;
  readonly #home: Home;
  readonly #device: LabDevice;
  #links = 0;

  private constructor(lab: Lab, home: Home, device: LabDevice) {
    this.#lab = lab;
    this.#home = home;
    this.#device = device;
  }

  static async open(lab: Lab): Promise<Ladder> {
    const home = lab.internet.home('device', 'open');
    return new Ladder(lab, home, await lab.products.device(home.host, 'de-ladder', '--no-mdns'));
  }

  /** All rungs at the same time, each with its own links. */
  async climb(): Promise<void> {
    await Promise.all(RUNGS.flatMap((rung) => rung.ways.map((way) => this.#climb(rung, way))));
  }

  async #climb({ name: rung, link: options, bytes, p95 }: Rung, way: Way): Promise<void> {
    const number = this.#links++;
    const { internet, products } = this.#lab;
    const place = { far: internet.core, device: `rung${number}`, addresses: [`10.77.${number}.1`, `10.77.${number}.2`] } as const;
    const link = await EmulatedLink.open({ ...options, seed: SEED }, place);
    try {
      link.near.ip(`route add default dev ${place.device}`);
      // Packets that leave the core on this link have the base station's address, too.
      internet.core.ip(`route replace 10.77.${number}.0/24 dev ${place.device} src ${STATION_ADDRESS}`);
      const client = products.client(link.near);
      const name = `${way}-${number}`;
      await this.#connect(client, name, way);
      const transfer = client.call<number>('transfer', { name, bytes });
      const answered = await requestsDuring(transfer, client, name);
      const text = `${way}, ${rung}`;
      expect([text, (await client.call<History>('history', { name })).closed]).toEqual([text, null]);
      const { ab, ba } = await link.look();
      expect([text, ab.lost > 0, ba.lost > 0]).toEqual([text, options.loss !== undefined, options.loss !== undefined]);
      record(`${text}, kbit/s`, 'ours', (2 * bytes * 8) / (await transfer));
      record(`${text}, requests, p95, ms`, 'ours', percentile(answered, 95), { atMost: p95 });
    } finally {
      await link.close();
    }
  }

  async #connect(client: Child, name: string, way: Way): Promise<void> {
    const direct = { Remote: false, candidates: [[this.#home.outside, LOCAL_PORT]] };
    const { candidates = [], ...more } = way === 'direct' ? direct : { Rendezvous: false };
    const options = { ...this.#device.options, PrivateKey: this.#lab.products.keys[0]!.pem, ...more };
    for (let tries = 1; ; tries++) {
      try {
        await client.call('connect', { name, options, candidates });
        return;
      } catch (error) {
        if (tries === TRIES) throw error;
      }
    }
  }
}

/** @returns ms of each request */
async function requestsDuring(transfer: Promise<number>, client: Child, name: string): Promise<number[]> {
  const answered: number[] = [];
  let isOver = false;
  const over = transfer.finally(() => {
    isOver = true;
  });
  over.catch(() => {});
  do {
    answered.push(await client.call<number>('request', { name }));
    await sleep(PAUSE);
  } while (!isOver);
  await over;
  return answered;
}
