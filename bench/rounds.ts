/**
 * Interleaved rounds of short measurements with the `benchmark` package.
 *
 * A machine drifts: clocks, neighbours, heat. So each round measures every contender once, briefly, one after the
 * other, and the median over the rounds counts. The first rounds only warm up: WebAssembly starts in V8's baseline
 * compiler, JavaScript in its interpreter.
 */
import Benchmark from 'benchmark';
import { type Spread, spread } from './report.ts';

export interface Contender {
  readonly name: string;
  /** Runs one operation; its input is prepared before. */
  readonly run: () => void;
}

export interface RoundOptions {
  /** Counted rounds, and warm-up rounds before them. */
  readonly rounds: number;
  readonly warmUp: number;
  /** Seconds per contender and round. */
  readonly seconds: number;
}

/**
 * Operations per iteration of the harness. `benchmark` compiles its loop again for each measurement, and V8 interprets
 * it at first, which costs up to a twentieth of our shortest operations.
 */
const BATCH = 16;

const usual: RoundOptions = { rounds: 21, warmUp: 3, seconds: 0.04 };

/** Returns the operations per second of each contender. */
export function operationsPerSecond(contenders: readonly Contender[], options: Partial<RoundOptions> = {}): Record<string, Spread> {
  const { rounds, warmUp, seconds } = { ...usual, ...options };
  const values = new Map<string, number[]>(contenders.map(({ name }) => [name, []]));
  const batches = contenders.map(({ name, run }) => ({ name, batch: repeated(run) }));
  for (let round = 0; round < warmUp + rounds; round++) {
    for (const { name, batch } of batches) {
      const rate = once(name, batch, seconds) * BATCH;
      if (round >= warmUp) values.get(name)?.push(rate);
    }
  }
  return Object.fromEntries([...values].map(([name, rates]) => [name, spread(rates)]));
}

function repeated(run: () => void): () => void {
  return () => {
    for (let index = 0; index < BATCH; index++) run();
  };
}

function once(name: string, run: () => void, seconds: number): number {
  const benchmark = new Benchmark(name, run, { minTime: seconds / 4, maxTime: seconds, minSamples: 3 });
  benchmark.run({ async: false });
  const failure = (benchmark as { error?: unknown }).error;
  if (failure) throw failure;
  return benchmark.hz;
}
