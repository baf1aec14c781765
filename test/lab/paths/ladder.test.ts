/**
 * A ladder of links from good to awful, each with a client at its near end; base station and device are behind the far end. On every rung, relayed and direct: the
 * connection stands, every byte of a transfer arrives there and back, and requests beside it are answered.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, expect, it, vi } from 'vitest';
import type { Child } from '../../../bench/processes/parent.ts';
import { percentile } from '../../../bench/report.ts';
import { EmulatedLink } from '../emulator.ts';
import { record } from '../figures.ts';
import type { LinkOptions } from '../link.ts';
import type { History } from './echo.ts';
import { STATION_ADDRESS } from './internet.ts';
import { type LabDevice, labWithProducts } from './products.ts';

interface Rung {
  readonly name: string;
  readonly link: LinkOptions;
  /** Of the transfer, each way. */
  readonly bytes: number;
  /** ms: goal of 95 % of the requests. */
  readonly p95: number;
}

/** Named by Mbit/s, ms there and back, ms of jitter each way, percent of loss and packets lost in a row. */
const RUNGS: readonly Rung[] = [
  { name: '100 Mbit/s, 10 ms', link: { rate: 100, delay: 5 }, bytes: 4_000_000, p95: 300 },
  {
    name: '20 Mbit/s, 30 ms, jitter 10, 1 %',
    link: { rate: 20, delay: 15, jitter: 10, loss: 1, queue: 100_000 },
    bytes: 2_000_000,
    p95: 500,
  },
  {
    name: '5 Mbit/s, 100 ms, jitter 30, 3 % in bursts of 3',
    link: { rate: 5, delay: 50, jitter: 30, loss: 3, burst: 3, queue: 80_000 },
    bytes: 500_000,
    p95: 1_500,
  },
  {
    name: '1 Mbit/s, 400 ms, jitter 80, 10 % in bursts of 10',
    link: { rate: 1, delay: 200, jitter: 80, loss: 10, burst: 10, queue: 60_000 },
    bytes: 150_000,
    p95: 5_000,
  },
  {
    name: '256 kbit/s, 800 ms, jitter 150, 25 % in bursts of 40',
    link: { rate: 0.256, delay: 400, jitter: 150, loss: 25, burst: 40, queue: 32_000 },
    bytes: 60_000,
    p95: 30_000,
  },
];
/** With it the first bursts of 40 begin behind the 42nd packet there and the 47th back: behind the connect, and before the end. */
const SEED = 6;
const WAYS = ['relayed', 'direct'] as const;
/** ms between a request's answer and the next one. */
const PAUSE = 300;
/** Connects before a rung is given up. */
const TRIES = 5;

vi.setConfig({ testTimeout: 300_000, hookTimeout: 60_000 });

labWithProducts('a link', { keys: 1 }, (lab) => {
  let device: LabDevice;
  let deviceAddress: string;

  beforeAll(async () => {
    const home = lab.internet.home('device', 'open');
    deviceAddress = home.outside;
    device = await lab.products.device(home.host, 'de-ladder', '--no-mdns');
  });

  it('of each rung, from good to awful, carries every byte, and requests beside it', async () => {
    await Promise.all(RUNGS.flatMap((rung, index) => WAYS.map((way, other) => climb(rung, way, 2 * index + other))));
  });

  async function climb({ name: rung, link: options, bytes, p95 }: Rung, way: (typeof WAYS)[number], number: number): Promise<void> {
    const place = { far: lab.internet.core, device: `rung${number}`, addresses: [`10.77.${number}.1`, `10.77.${number}.2`] } as const;
    const link = await EmulatedLink.open({ ...options, seed: SEED }, place);
    try {
      link.near.ip(`route add default dev ${place.device}`);
      // What leaves the core comes from the base station's address on this way, too.
      link.far.ip(`route replace 10.77.${number}.0/24 dev ${place.device} src ${STATION_ADDRESS}`);
      const client = lab.products.client(link.near);
      const name = `${way}-${number}`;
      await connect(client, name, way === 'direct');
      const answered: number[] = [];
      const transfer = client.call<number>('transfer', { name, bytes });
      await requestsDuring(transfer, client, name, answered);
      const text = `${way}, ${rung}`;
      expect([text, (await client.call<History>('history', { name })).closed]).toEqual([text, null]);
      const { ab, ba } = await link.look();
      expect([text, ab.lost + ba.lost > 0]).toEqual([text, options.loss !== undefined]);
      record(`${text}, kbit/s`, 'ours', (2 * bytes * 8) / (await transfer));
      record(`${text}, requests, p95, ms`, 'ours', percentile(answered, 95), { atMost: p95 });
    } finally {
      await link.close();
    }
  }

  async function connect(client: Child, name: string, isDirect: boolean): Promise<void> {
    const direct = { Remote: false, candidates: [[deviceAddress, 5592]] };
    const { candidates = [], ...more } = isDirect ? direct : { Rendezvous: false };
    const options = { ...device.options, PrivateKey: lab.products.keys[0]!.pem, ...more };
    for (let tries = 1; ; tries++) {
      try {
        await client.call('connect', { name, options, candidates });
        return;
      } catch (error) {
        if (tries === TRIES) throw error;
      }
    }
  }

  async function requestsDuring(transfer: Promise<number>, client: Child, name: string, answered: number[]): Promise<void> {
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
  }
});
