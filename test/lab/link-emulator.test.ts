/** The emulator itself: packets suffer its configured faults, and its counters report them. */
import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { withChildren } from '../../bench/processes/parent.ts';
import { fromRoot } from '../../bench/root.ts';
import { EMULATOR, EmulatedLink, type EmulatedLinkCounters } from './emulator.ts';
import { lab } from './lab.ts';
import { FAR_ADDRESS, type Link, type LinkOptions, over } from './link.ts';

const program = { name: 'datagrams', script: fromRoot('test/lab/datagrams.mjs') };
/** IPv4 and UDP header. */
const HEADERS = 28;

lab('link emulator', () => {
  it('delays each direction', async () => {
    const { times, counters } = await ping({ delay: [10, 20] }, { count: 5, interval: 10 });
    expect(times.length).toBe(5);
    expect(Math.min(...times)).toBeGreaterThanOrEqual(30);
    expect(counters).toMatchObject({ ab: { packets: 5, bytes: 5 * 128, lost: 0, dropped: 0 }, ba: { packets: 5, lost: 0, dropped: 0 } });
  });

  it('loses in one direction the packets that the seed selects', async () => {
    const some = { loss: [30, 0], seed: 3 } as const;
    const first = await ping(some, { count: 200 });
    expect(first.counters.ab.lost).toBeGreaterThan(30);
    expect(first.counters.ab.lost).toBeLessThan(90);
    expect(first.counters.ba.lost).toBe(0);
    expect(first.times.length).toBe(200 - first.counters.ab.lost);
    expect((await ping(some, { count: 200 })).counters.ab.lost).toBe(first.counters.ab.lost);
  });

  it('loses the same share in bursts, each of the configured length', async () => {
    const some = { loss: [25, 0], burst: [10, 1], seed: 7 } as const;
    const load = { count: 600, interval: 1 };
    const { numbers, counters } = await ping(some, load);
    expect(counters.ab.lost).toBeGreaterThan(90);
    expect(counters.ab.lost).toBeLessThan(210);
    // The next one may begin where one ends.
    const runs = [...numbers, load.count].map((number, index) => number - (numbers[index - 1] ?? -1) - 1).filter((lost) => lost > 0);
    expect(runs.length).toBeGreaterThan(5);
    expect(runs.slice(0, -1).filter((lost) => lost % 10 !== 0)).toEqual([]);
    expect((await ping(some, load)).numbers).toEqual(numbers);
  });

  it('sends at the rate of the line and drops packets that exceed its queue', async () => {
    // 60 packets at once on a line that takes 8 ms for each, with a queue of ten.
    const { counters } = await ping({ rate: [1, 0], queue: [10_000, 0] }, { count: 60, size: 1000 - HEADERS });
    expect(counters.ab.dropped).toBeGreaterThan(40);
    expect(counters.ab.waited).toBeGreaterThan(50);
    expect(counters.ab.waited).toBeLessThanOrEqual(72);
    // The queued packets waited 0, 8, 16 … ms.
    expect(counters.ab.mean).toBeGreaterThan(counters.ab.waited / 3);
    expect(counters.ab.mean).toBeLessThan(counters.ab.waited / 1.5);
    expect(Math.abs(counters.ab.p99 - counters.ab.waited)).toBeLessThan(0.2);
  });

  it('reports its counters while it runs, and then restarts the times in the queue', async () => {
    const looks: EmulatedLinkCounters[] = [];
    const last = await over(await EmulatedLink.open({ rate: [1, 0] }), async (link) => {
      const emulated = link as EmulatedLink;
      await send(link, { count: 20, size: 1000 - HEADERS });
      looks.push(await emulated.look(), await emulated.look());
    });
    expect(looks.map(({ ab }) => ab.packets)).toEqual([20, 20]);
    expect(looks[0]?.ab.waited).toBeGreaterThan(100);
    expect([looks[1]?.ab.waited, last.ab.waited, last.ab.p99, last.ab.packets]).toEqual([0, 0, 0, 20]);
  });

  it('adds jitter', async () => {
    const { times } = await ping({ jitter: 20 }, { count: 50, interval: 1 });
    expect(times.length).toBe(50);
    expect(Math.max(...times)).toBeGreaterThan(10);
  });

  it('counts fragments', async () => {
    const { counters, fragmented } = await ping({}, { count: 2, size: 3000 });
    expect(counters.ab.fragments).toBe(6);
    expect(fragmented).toBeGreaterThan(0);
  });

  it('reports in one line what is wrong with its arguments', () => {
    for (const wrong of [
      '--loss=101',
      '--burst=0',
      '--rate=fast',
      '--delay=1:2:3',
      '--seed=-1',
      '--a=here',
      '--device=a-name-much-too-long',
      '--what',
      'up',
    ]) {
      const { status, stderr } = spawnSync(EMULATOR, [wrong], { encoding: 'utf8' });
      expect([wrong, status, stderr.trim().split('\n').length]).toEqual([wrong, 2, 1]);
    }
  });
});

/** Datagrams over a link and back. */
async function ping(options: LinkOptions, load: Load) {
  let answers: Answers = { times: [], numbers: [] };
  let fragmented = 0;
  const counters = await over(await EmulatedLink.open(options), async (link) => {
    answers = await send(link, load);
    fragmented = link.far.fragmented();
  });
  return { ...answers, counters, fragmented };
}

interface Answers {
  readonly times: readonly number[];
  readonly numbers: readonly number[];
}

interface Load {
  readonly count: number;
  readonly size?: number;
  readonly interval?: number;
}

function send(link: Link, { size = 100, ...load }: Load): Promise<Answers> {
  return withChildren(async (start) => {
    const [near, far] = [start(link.near.inside(program)), start(link.far.inside(program))];
    const port = await far.call<number>('listen', { host: FAR_ADDRESS });
    return near.call<Answers>('ping', { host: FAR_ADDRESS, port, size, ...load });
  });
}
