/**
 * The fuzzer: runs iterations of every target in turn until the time is over or something breaks.
 *
 *   --seconds N  how long, default 60
 *   --seed S     seed of the first iteration of each target, a whole number; default from the time, and printed
 *   --count C    number of iterations of each target, instead of a time
 *   target…      only these; an unknown name prints all
 *
 * Iteration i of a target depends on seed S + i and nothing else, so the printed command replays a failure. Besides the
 * checks of each target, an iteration must not take longer than 20 s and the heap must not grow without bound. Exit
 * code 1 after a failure.
 */
import { inspect, parseArgs } from 'node:util';
import { Random } from '../../testing/random.ts';
import type { Target } from './target.ts';
import { targets } from './targets.ts';

/** ms that a target of weight 1 runs before the next one's turn. */
const TURN = 200;
const MAX_ITERATION = 20_000;
/** Bytes by which the heap may exceed its size after the first round, and ms between two measurements. */
const MAX_GROWTH = 96 << 20;
const HEAP_INTERVAL = 5000;

const USAGE = 'usage: npm run fuzz [-- --seconds N | --count C] [--seed S] [target…]';

const { values, positionals } = parsed();
if (values.help) {
  process.stdout.write(`${USAGE}\ntargets: ${targets.map(({ name }) => name).join(' ')}\n`);
  process.exit(0);
}
const seconds = number('seconds', values.seconds);
const first = values.seed === undefined ? Math.floor(Date.now() / 1000) : number('seed', values.seed);
const count = values.count === undefined ? Number.POSITIVE_INFINITY : number('count', values.count);
const chosen = positionals.length === 0 ? targets : positionals.map(targetOf);

process.stdout.write(`fuzz: seed ${first}, ${count === Number.POSITIVE_INFINITY ? `${seconds} s` : `${count} iterations`}\n`);
const end = performance.now() + (count === Number.POSITIVE_INFINITY ? seconds * 1000 : Number.POSITIVE_INFINITY);
const done = new Map<Target, number>(chosen.map((target) => [target, 0]));
let heap = { bytes: 0, lookedAt: 0 };
for (let round = 0; performance.now() < end && [...done.values()].some((iterations) => iterations < count); round++) {
  for (const target of chosen) await turn(target);
  lookAtHeap(round);
}
for (const [{ name }, iterations] of done) process.stdout.write(`${name}: ${iterations} iterations\n`);
process.stdout.write('fuzz: nothing found\n');

async function turn(target: Target): Promise<void> {
  const until = Math.min(end, performance.now() + TURN * (target.weight ?? 1));
  do {
    const iteration = done.get(target)!;
    if (iteration >= count) return;
    await iterate(target, first + iteration);
    done.set(target, iteration + 1);
  } while (performance.now() < until);
}

async function iterate(target: Target, seed: number): Promise<void> {
  const start = performance.now();
  try {
    await target.iterate(new Random(`${target.name} ${seed}`));
  } catch (error) {
    fail(target, seed, inspect(error));
  }
  const time = performance.now() - start;
  if (time > MAX_ITERATION) fail(target, seed, `took ${Math.round(time)} ms`);
}

function lookAtHeap(round: number): void {
  const now = performance.now();
  if (round > 0 && now - heap.lookedAt < HEAP_INTERVAL) return;
  (globalThis as { gc?: () => void }).gc?.();
  const bytes = process.memoryUsage().heapUsed;
  if (round === 0) heap = { bytes, lookedAt: now };
  heap.lookedAt = now;
  if (bytes <= heap.bytes + MAX_GROWTH) return;
  process.stdout.write(`fuzz: FAILED, the heap grew from ${heap.bytes} to ${bytes} bytes (seed ${first})\n`);
  process.exit(1);
}

function fail(target: Target, seed: number, what: string): never {
  process.stdout.write(`fuzz: FAILED ${target.name}, seed ${seed}\n${what}\n`);
  process.stdout.write(`replay: npm run fuzz -- --seed ${seed} --count 1 ${target.name}\n`);
  process.exit(1);
}

function parsed() {
  const text = { type: 'string' } as const;
  const options = { seconds: { ...text, default: '60' }, seed: text, count: text, help: { type: 'boolean' } } as const;
  try {
    return parseArgs({ options, allowPositionals: true });
  } catch (error) {
    process.stderr.write(`fuzz: ${(error as Error).message.split('. ')[0]}\n${USAGE}\n`);
    process.exit(2);
  }
}

function targetOf(name: string): Target {
  const found = targets.find((target) => target.name === name);
  if (found !== undefined) return found;
  process.stderr.write(`fuzz: no target ${name}; there are: ${targets.map((target) => target.name).join(' ')}\n`);
  process.exit(2);
}

function number(name: string, text: string): number {
  const value = Number(text);
  if (text !== '' && Number.isInteger(value) && value >= 0) return value;
  process.stderr.write(`fuzz: --${name} takes a whole number, not ${text}\n`);
  process.exit(2);
}
