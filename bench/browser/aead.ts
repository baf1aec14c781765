/**
 * Runs in the browser: interleaved rounds, as `bench/rounds.ts` has them in Node. That one measures with a package that makes code of text,
 * which the Content-Security-Policy forbids.
 */
import { message, openers, sealers } from '../aead-contenders.ts';
import type { Contender } from '../rounds.ts';

/** What to do with each message. */
export type Operation = 'seal' | 'open' | 'both';

export interface AeadRounds {
  readonly operation: Operation;
  /** Bytes of a message. */
  readonly size: number;
  /** Counted rounds, and those before that are not. */
  readonly rounds: number;
  readonly warmUp: number;
  /** ms per contender and round: long beside the resolution of a page's clock, 0.1 ms. */
  readonly time: number;
}

/** Operations between two looks at the clock. */
const BATCH = 16;

/** Operations per second of each contender, one figure a round. */
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
