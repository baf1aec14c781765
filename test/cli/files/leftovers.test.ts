/** What a device keeps of partial files: how many, of which clients, how long, and over restarts. */
import { mkdir, readdir, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { LEFTOVER_TIME, Leftovers, MAX_LEFTOVERS } from '../../../cli/device-app/leftovers.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

const [A, B] = ['a'.repeat(64), 'b'.repeat(64)] as const;
const WALL = 1_800_000_000_000;
const none = (): void => {};

let directory: string;
let leftovers: Leftovers;
let clock: ManualClock;

beforeEach(async () => {
  clock = new ManualClock(0, WALL);
  directory = temporaryDirectory();
  leftovers = new Leftovers(directory, clock);
  await leftovers.open();
});

/** Clients and names of the leftovers. */
async function kept(): Promise<string[]> {
  return (await readdir(directory)).map((file) => file.replace(/^\.(.+)\.(.)\2{63}\.part$/, '$2$1')).sort();
}

/** Interrupts a transfer after some bytes, one ms after the previous one. */
async function interrupted(client: string, name: string): Promise<void> {
  clock.pass(1);
  const held = await leftovers.hold(client, name, none);
  await writeFile(held.path, 'part');
  await held.release();
}

/** @param gone names of leftovers of A that a timer removes then */
async function advance(time: number, ...gone: string[]): Promise<void> {
  clock.pass(time);
  // A leftover that a timer removes is gone when it can be held again.
  for (const name of gone) await (await leftovers.hold(A, name, none)).release();
  for (const client of [A, B]) for (let i = 0; i < 9; i++) await (await leftovers.hold(client, `${i}`, none)).release();
}

test('a client that fills all slots loses its own oldest leftover; another client gets a slot, and keeps it', async () => {
  for (let i = 0; i < MAX_LEFTOVERS + 1; i++) await interrupted(A, `${i}`);
  expect(await kept()).toEqual(['a1', 'a2', 'a3', 'a4', 'a5', 'a6', 'a7', 'a8']);
  await interrupted(B, '1');
  expect(await kept()).toEqual(['a2', 'a3', 'a4', 'a5', 'a6', 'a7', 'a8', 'b1']);
  for (let i = 9; i < 30; i++) await interrupted(A, `${i}`);
  expect(await kept()).toEqual(['a23', 'a24', 'a25', 'a26', 'a27', 'a28', 'a29', 'b1']);
});

test('the oldest leftover is removed when each client has one', async () => {
  const clients = Array.from({ length: MAX_LEFTOVERS + 1 }, (_, index) => index.toString(16).repeat(64));
  for (const client of clients) await interrupted(client, 'x');
  expect(await kept()).toEqual(['1x', '2x', '3x', '4x', '5x', '6x', '7x', '8x']);
});

test('the age of a resumed leftover counts from its last byte', async () => {
  for (let i = 0; i < MAX_LEFTOVERS; i++) await interrupted(A, `${i}`);
  await interrupted(A, '0');
  await interrupted(A, '8');
  expect(await kept()).toEqual(['a0', 'a2', 'a3', 'a4', 'a5', 'a6', 'a7', 'a8']);
});

test('a transfer in progress takes no slot and loses nothing', async () => {
  const held = await leftovers.hold(A, 'running', none);
  await writeFile(held.path, 'part');
  for (let i = 0; i < MAX_LEFTOVERS; i++) await interrupted(B, `${i}`);
  expect(await kept()).toHaveLength(MAX_LEFTOVERS + 1);
  await held.release();
  expect(await kept()).toEqual(['arunning', 'b1', 'b2', 'b3', 'b4', 'b5', 'b6', 'b7']);
});

test('an empty leftover, and one that has become a file, are not kept', async () => {
  const held = await leftovers.hold(A, 'empty', none);
  await writeFile(held.path, '');
  await held.release();
  await (await leftovers.hold(A, 'never written', none)).release();
  expect(await kept()).toEqual([]);
});

test('each leftover is removed after a day, by a timer', async () => {
  await interrupted(A, 'first');
  clock.pass(1000);
  await interrupted(A, 'second');
  await advance(LEFTOVER_TIME - 1002);
  expect(await kept()).toEqual(['afirst', 'asecond']);
  await advance(1, 'first');
  expect(await kept()).toEqual(['asecond']);
  await advance(LEFTOVER_TIME, 'second');
  expect(await kept()).toEqual([]);
  expect(clock.timers.filter(({ at }) => at < Number.POSITIVE_INFINITY)).toEqual([]);
});

test('a second transfer of a name waits until the first one has released it', async () => {
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

test('a start keeps leftovers within age and count, and removes those that cannot be resumed', async () => {
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

test('a leftover that a transfer takes during the cleanup stays', async () => {
  await interrupted(A, 'old');
  await interrupted(A, 'taken');
  clock.pass(LEFTOVER_TIME);
  // The first is being removed.
  const held = await leftovers.hold(A, 'taken', none);
  await writeFile(held.path, 'more');
  await advance(0);
  expect(await kept()).toEqual(['ataken']);
  await held.release();
  expect(await kept()).toEqual(['ataken']);
});
