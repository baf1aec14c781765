/**
 * One bulk stream at 100 Mbit/s and 50 ms round trip: with random loss, every byte arrives and nothing is fragmented;
 * in deep and shallow queues. The goodput is a figure, and so is our effect on the queue.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import type { Pair } from '../../bench/contenders.ts';
import { program, withChildren } from '../../bench/processes/parent.ts';
import { percentile } from '../../bench/report.ts';
import { fromRoot } from '../../bench/root.ts';
import { EmulatedLink } from './emulator.ts';
import { record } from './figures.ts';
import { lab, overLink, withContenders } from './lab.ts';
import { FAR_ADDRESS, type Link } from './link.ts';
import type { Goal } from './report.ts';

/**
 * Bytes of the first transfer, then seconds that further ones take at the rate of the previous one; the last one
 * counts.
 */
const FIRST_BYTES = 512 * 1024;
const SECONDS = [2, 8];

const TEN_MEGABYTES = 10_000_000;

const RTT = 50;
/** Bytes: one bandwidth-delay product. */
const BDP = 625_000;
const link = { rate: 100, delay: RTT / 2, queue: BDP, seed: 7 };
const ours = [program('ours')];

/** ms in which a transfer finds its rate, and ms over which its queue is then observed. */
const SETTLE = 2_000;
const WATCH = 10_000;
/** ms between the datagrams that measure the queue, and bytes of each. */
const PROBE = { interval: 10, size: 64 };
/** More than the time allows: the transfer is cut off. */
const ENDLESS = 4e9;

/** By percent of loss. */
const goals: Readonly<Record<number, Goal>> = { 0: { atLeast: 90 }, 1: { atLeast: 85 }, 5: { atLeast: 80 } };

lab('one bulk stream', () => {
  for (const loss of [0, 1, 5]) {
    it(`is byte-exact and without fragments at ${loss} % loss`, async () => {
      let fragmented = 0;
      const counters = await overLink({ ...link, loss }, async (over) => {
        await withContenders(over, ours, (contenders) =>
          contenders.each(async (pair) => figure(`${loss} % loss, Mbit/s`, pair, await goodput(pair), goals[loss])),
        );
        fragmented = over.near.fragmented() + over.far.fragmented();
      });
      expect(counters.ab.packets).toBeGreaterThan(1000);
      if (loss > 0) expect(counters.ab.lost).toBeGreaterThan(0);
      expect(fragmented).toBe(0);
    });
  }

  it('sends no packets above the MTU of its interface', async () => {
    let fragmented = 0;
    const counters = await overLink({ ...link, mtu: 1400 }, async (over) => {
      await withContenders(
        over,
        ours,
        (contenders) => contenders.each(({ near }) => near.call<void>('bulk', { bytes: TEN_MEGABYTES, check: true })),
        'none',
      );
      fragmented = over.near.fragmented() + over.far.fragmented();
    });
    expect(fragmented).toBe(0);
    // Nearly all have the size that fits: 1,400 bytes with their IP header.
    expect(counters.ab.bytes / counters.ab.packets).toBeGreaterThan(1300);
  });

  it('of ten megabytes fills a line of 10 Mbit/s', async () => {
    const counters = await overLink({ ...link, rate: 10, queue: BDP / 10 }, async (over) => {
      await withContenders(over, ours, (contenders) =>
        contenders.each(async (pair) => {
          const rate = await pair.near.call<number>('bulk', { bytes: TEN_MEGABYTES, check: true });
          figure('10 MB at 10 Mbit/s, Mbit/s', pair, rate * 8, { atLeast: 9 });
        }),
      );
    });
    expect(counters.ab.bytes).toBeGreaterThan(TEN_MEGABYTES);
  });

  it('delays others in a deep queue for less than a round trip', async () => {
    // Each on a link of its own: one must not leave packets in the next one's queue.
    for (const name of ['none', 'tcp', 'tcp-bbr']) {
      await overLink({ ...link, queue: 4 * BDP }, async (over) => {
        const watch = async (pair: Pair): Promise<void> => {
          const { mean, p99 } = await queueing(over, pair);
          figure('queue of 4 BDP, wait mean, ms', pair, mean, { atMost: RTT });
          figure('queue of 4 BDP, wait p99, ms', pair, p99, { atMost: RTT });
        };
        await withContenders(over, name === 'none' ? ours : [], (contenders) => contenders.each(watch), name);
      });
    }
  });

  it('causes little loss in a shallow queue', async () => {
    const { ab } = await overLink({ ...link, queue: BDP / 4 }, async (over) => {
      await withContenders(
        over,
        ours,
        (contenders) => contenders.each(async (pair) => figure('queue of 0.25 BDP, Mbit/s', pair, await goodput(pair))),
        'none',
      );
    });
    // Nothing is lost at random: netem counts packets that exceeded its queue as lost.
    const lost = ab.lost + (ab.dropped ?? 0);
    record('queue of 0.25 BDP, lost, %', 'ours', (100 * lost) / (lost + ab.packets), { atMost: 5 });
  });
});

/** Mbit/s; rejects when the received bytes differ from the sent ones. */
async function goodput({ near }: Pair): Promise<number> {
  let rate = await near.call<number>('bulk', { bytes: FIRST_BYTES, check: true });
  for (const seconds of SECONDS)
    rate = await near.call<number>('bulk', { bytes: Math.max(65_536, Math.round(rate * 1e6 * seconds)), check: true });
  return rate * 8;
}

/** Queueing delay of packets in ms beside a bulk stream that has already found its rate. */
async function queueing(link: Link, { near }: Pair): Promise<{ mean: number; p99: number }> {
  near.call('bulk', { bytes: ENDLESS }).catch(() => {});
  await sleep(SETTLE);
  // The emulator measures exactly; elsewhere datagrams do, plus the machine's own delays.
  if (!(link instanceof EmulatedLink)) return probed(link);
  await link.look();
  await sleep(WATCH);
  return (await link.look()).ab;
}

async function probed({ near, far }: Link): Promise<{ mean: number; p99: number }> {
  const datagrams = { name: 'datagrams', script: fromRoot('test/lab/datagrams.mjs') };
  const times = await withChildren(async (start) => {
    const [from, to] = [start(near.inside(datagrams)), start(far.inside(datagrams))];
    const port = await to.call<number>('listen', { host: FAR_ADDRESS });
    return from.call<number[]>('ping', { host: FAR_ADDRESS, port, count: WATCH / PROBE.interval, ...PROBE });
  });
  const waits = times.map((time) => Math.max(0, time - RTT));
  return { mean: waits.reduce((sum, wait) => sum + wait, 0) / waits.length, p99: percentile(waits, 99) };
}

/** The goal is ours alone. */
function figure(row: string, { name }: Pair, value: number, goal?: Goal): void {
  record(row, name, value, name === 'ours' ? goal : {});
}
