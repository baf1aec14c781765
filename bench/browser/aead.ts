/**
 * Interleaved rounds that run in the browser, like those of `bench/rounds.ts` in Node. The package used there turns
 * text into code, which the Content-Security-Policy forbids.
 */
import { message, openers, sealers } from '../aead-contenders.ts';
import type { Contender } from '../rounds.ts';

/** The operation on each message. */
export type Operation = 'seal' | 'open' | 'both';

export interface AeadRounds {
  readonly operation: Operation;
  /** Bytes of a message. */
  readonly size: number;
  /** Counted rounds, and warm-up rounds before them. */
  readonly rounds: number;
  readonly warmUp: number;
  /** ms per contender and round: long compared with the resolution of a page's clock, 0.1 ms. */
  readonly time: number;
}

/** Operations between two readings of the clock. */
const BATCH = 16;

/** Returns the operations per second of each contender, one figure per round. */
export function measure({ operation, size, rounds, warmUp, time }: AeadRounds): Record<string, number[]> {
  const contenders = contendersOf(operation, size);
  const rates = contenders.map(({ name }) => [name, [] as number[]] as const);
  for (let round = 0; round < warmUp + rounds; round++) {
    for (const [index, { run }] of contenders.entries()) {
      const rate = operationsPerSecond(run, time);
      if (round >= warmUp) rates[index]?.[1].push(rate);
    }
  }
  return Object.fromEntries(rates);
}

/** `both` seals a message and then opens one of the same size. */
function contendersOf(operation: Operation, size: number): Contender[] {
  const [sealing, opening] = [sealers(message(size)), openers(message(size))];
  if (operation !== 'both') return operation === 'seal' ? sealing : opening;
  return sealing.map(({ name, run }, index) => {
    const open = opening[index]!.run;
    const both = (): void => {
      run();
      open();
    };
    return { name, run: both };
  });
}

function operationsPerSecond(run: () => void, time: number): number {
  const start = performance.now();
  for (let operations = BATCH; ; operations += BATCH) {
    for (let index = 0; index < BATCH; index++) run();
    const passed = performance.now() - start;
    if (passed >= time) return (operations * 1000) / passed;
  }
}
