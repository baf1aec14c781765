/** What a device keeps of files that arrived in part: how many, of whom, how long, and over restarts. */
import { mkdir, mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { LEFTOVER_TIME, Leftovers, MAX_LEFTOVERS } from '../../../cli/device-app/leftovers.ts';
import type { Clock } from '../../../transport/environment.ts';

const [A, B] = ['a'.repeat(64), 'b'.repeat(64)] as const;
const WALL = 1_800_000_000_000;
const none = (): void => {};

let directory: string;
let leftovers: Leftovers;
/** ms since the start; timers run when it is set. */
let now: number;
let timers: { at: number; run: () => void }[];
const clock: Clock = {
  now: () => now,
  wallTime: () => WALL + now,
  schedule: (delay: number, run: () => void) => {
    const timer = { at: now + delay, run };
    timers.push(timer);
    return () => {
      timers = timers.filter((each) => each !== timer);
    };
  },
  defer: none,
  soon: none,
};

beforeEach(async () => {
  [now, timers] = [0, []];
  directory = await mkdtemp(join(tmpdir(), 'svc-leftovers-'));
  leftovers = new Leftovers(directory, clock);
  await leftovers.open();
});
afterEach(() => rm(directory, { recursive: true }));

/** Who has leftovers of which names. */
async function kept(): Promise<string[]> {
  return (await readdir(directory)).map((file) => file.replace(/^\.(.+)\.(.)\2{63}\.part$/, '$2$1')).sort();
}

/** A transfer that is interrupted after some bytes, one ms after the one before. */
async function interrupted(client: string, name: string): Promise<void> {
  now++;
  const held = await leftovers.hold(client, name, none);
  await writeFile(held.path, 'part');
  await held.release();
}

async function advance(time: number): Promise<void> {
  now += time;
  for (const { run } of timers.filter(({ at }) => at <= now)) run();
  // What a timer removes is removed when it can be held again.
  for (const client of [A, B]) for (let i = 0; i < 9; i++) await (await leftovers.hold(client, `${i}`, none)).release();
}

test('a client that fills all places loses its own oldest one; another one finds a place, and keeps it', async () => {
  for (let i = 0; i < MAX_LEFTOVERS + 1; i++) await interrupted(A, `${i}`);
  expect(await kept()).toEqual(['a1', 'a2', 'a3', 'a4', 'a5', 'a6', 'a7', 'a8']);
  await interrupted(B, '1');
  expect(await kept()).toEqual(['a2', 'a3', 'a4', 'a5', 'a6', 'a7', 'a8', 'b1']);
  for (let i = 9; i < 30; i++) await interrupted(A, `${i}`);
  expect(await kept()).toEqual(['a23', 'a24', 'a25', 'a26', 'a27', 'a28', 'a29', 'b1']);
});

test('where all have one, the oldest makes way', async () => {
  const clients = Array.from({ length: MAX_LEFTOVERS + 1 }, (_, index) => index.toString(16).repeat(64));
  for (const client of clients) await interrupted(client, 'x');
  expect(await kept()).toEqual(['1x', '2x', '3x', '4x', '5x', '6x', '7x', '8x']);
});

test('one that is resumed counts from its last byte', async () => {
  for (let i = 0; i < MAX_LEFTOVERS; i++) await interrupted(A, `${i}`);
  await interrupted(A, '0');
  await interrupted(A, '8');
  expect(await kept()).toEqual(['a0', 'a2', 'a3', 'a4', 'a5', 'a6', 'a7', 'a8']);
});

test('a transfer that runs takes no place and loses nothing', async () => {
  const held = await leftovers.hold(A, 'running', none);
  await writeFile(held.path, 'part');
  for (let i = 0; i < MAX_LEFTOVERS; i++) await interrupted(B, `${i}`);
  expect(await kept()).toHaveLength(MAX_LEFTOVERS + 1);
  await held.release();
  expect(await kept()).toEqual(['arunning', 'b1', 'b2', 'b3', 'b4', 'b5', 'b6', 'b7']);
});

test('an empty one, and one that has become a file, are not kept', async () => {
  const held = await leftovers.hold(A, 'empty', none);
  await writeFile(held.path, '');
  await held.release();
  await (await leftovers.hold(A, 'never written', none)).release();
  expect(await kept()).toEqual([]);
});

test('each goes after a day, by a timer', async () => {
  await interrupted(A, 'first');
  now += 1000;
  await interrupted(A, 'second');
  await advance(LEFTOVER_TIME - 1002);
  expect(await kept()).toEqual(['afirst', 'asecond']);
  await advance(1);
  expect(await kept()).toEqual(['asecond']);
  await advance(LEFTOVER_TIME);
  expect(await kept()).toEqual([]);
  expect(timers.filter(({ at }) => at < Number.POSITIVE_INFINITY)).toEqual([]);
});

test('a second transfer of a name waits until the first one has let go', async () => {
  const steps: string[] = [];
  const first = await leftovers.hold(A, 'x', () => steps.push('superseded'));
  await writeFile(first.path, 'part');
  const second = leftovers.hold(A, 'x', none).then((held) => {
    steps.push('held');
    return held;
  });
  const other = await leftovers.hold(B, 'x', () => steps.push('wrong'));
  await other.release();
  steps.push('released');
  await first.release();
  await (await second).release();
  expect(steps).toEqual(['superseded', 'released', 'held']);
  expect(await kept()).toEqual(['ax']);
});

test('a start takes over what is not too old or too much, and removes what cannot be resumed', async () => {
  const files = {
    [`.old.${A}.part`]: -LEFTOVER_TIME,
    [`.young.${B}.part`]: -LEFTOVER_TIME + 5000,
    [`.ahead.${B}.part`]: 3600_000,
    '.whole.0123456789ab.part': 0,
    ...Object.fromEntries(Array.from({ length: MAX_LEFTOVERS }, (_, index) => [`.${index}.${A}.part`, -1000 + index])),
  };
  const others = ['.hidden', '.a.part', 'report.part', 'a.0123456789ab.part', 'photo.jpg', `a.${A}.part`];
  const folder = `.folder.${A}.part`;
  for (const name of [...Object.keys(files), ...others]) await writeFile(join(directory, name), 'part');
  for (const [name, age] of Object.entries(files)) await utimes(join(directory, name), (WALL + age) / 1000, (WALL + age) / 1000);
  await mkdir(join(directory, folder));
  leftovers = new Leftovers(directory, clock);
  await leftovers.open();
  const names = (await readdir(directory)).filter((name) => !others.includes(name) && name !== folder);
  expect(names.sort()).toEqual(
    [`.ahead.${B}.part`, `.young.${B}.part`, ...['2', '3', '4', '5', '6', '7'].map((index) => `.${index}.${A}.part`)].sort(),
  );
  await advance(5001);
  expect((await readdir(directory)).filter((name) => name.includes(B))).toEqual([`.ahead.${B}.part`]);
  await advance(LEFTOVER_TIME - 5001);
  expect((await readdir(directory)).filter((name) => name.includes(B))).toEqual([]);
});

test('what a transfer takes while others are tidied up stays', async () => {
  await interrupted(A, 'old');
  await interrupted(A, 'taken');
  now += LEFTOVER_TIME;
  for (const { run } of timers.splice(0)) run();
  // The first is being removed.
  const held = await leftovers.hold(A, 'taken', none);
  await writeFile(held.path, 'more');
  await advance(0);
  expect(await kept()).toEqual(['ataken']);
  await held.release();
  expect(await kept()).toEqual(['ataken']);
});
