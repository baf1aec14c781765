/**
 * The golden table: Mbit/s of one download by loss, round-trip time and congestion control, over a line of 50 Mbit/s
 * whose queue holds one bandwidth-delay product. When a cell gets better, raise the table; it must not get worse by
 * more than a fifth (randomness with few losses is worth a tenth) unless the change that causes it explains why and
 * lowers it.
 *
 * `SVC_GOLDEN=1 npx vitest run test/testing/golden.test.ts` prints the current table.
 *
 * @module-tag slow
 */
import { describe, expect, it } from 'vitest';
import { downloadAll, expectNoFailure, fileBench, MB } from '../runtime/interop/support.ts';

const RATE = 50e6;
const FILE = 4 * MB;
/** Share of the golden figure. */
const LEAST = 0.8;
const controllers = ['newreno', 'cubic', 'bbr'] as const;

/** By loss and packets held back by up to 5 ms, both in percent, and round-trip time in ms: newreno, cubic, bbr. */
const golden: readonly (readonly [loss: number, reorder: number, rtt: number, ...figures: number[]])[] = [
  [0, 0, 10, 45.03, 46.08, 45.69],
  [0, 0, 50, 33.07, 33.88, 33.47],
  [0, 0, 200, 14.58, 14.58, 14.45],
  [0, 10, 50, 32.52, 33.56, 33.34],
  [0.1, 0, 10, 30.06, 36.02, 45.69],
  [0.1, 0, 50, 33.5, 33.86, 33.39],
  [0.1, 0, 200, 13.13, 13.9, 13.82],
  [1, 0, 10, 11.05, 13.97, 45.65],
  [1, 0, 50, 2.51, 3.28, 31.49],
  [1, 0, 200, 0.69, 0.96, 11.06],
  [1, 10, 50, 2.59, 3.42, 28.86],
  [5, 0, 10, 3.51, 4.27, 43.01],
  [5, 0, 50, 0.81, 0.96, 28.16],
  [5, 0, 200, 0.23, 0.29, 9.23],
];

describe('golden table', () => {
  const cells = golden.flatMap(([loss, reorder, rtt, ...figures]) =>
    controllers.map((congestion, i) => ({ loss, reorder, rtt, congestion, figure: figures[i]! })),
  );

  const name = '$congestion keeps $figure Mbit/s at $loss % loss, $reorder % late and $rtt ms';
  const keeps = async ({ figure, ...cell }: (typeof cells)[number]) => {
    expect(await throughput(cell)).toBeGreaterThanOrEqual(figure * LEAST);
  };
  /** One of each congestion control: without faults, with packets held back, with the most loss. */
  const isQuick = (_: unknown, i: number): boolean => [0, 10, 41].includes(i);
  it.each(cells.filter(isQuick))(name, keeps);
  it.each(cells.filter((cell, i) => !isQuick(cell, i)))(name, keeps);

  const print = async () => {
    for (const [loss, reorder, rtt] of golden) {
      const figures: string[] = [];
      for (const congestion of controllers) figures.push((await throughput({ loss, reorder, rtt, congestion })).toFixed(2));
      process.stdout.write(`  [${loss}, ${reorder}, ${rtt}, ${figures.join(', ')}],\n`);
    }
  };
  if (process.env.SVC_GOLDEN !== undefined) it('prints itself', print);
});

interface Cell {
  loss: number;
  reorder: number;
  rtt: number;
  congestion: (typeof controllers)[number];
}

async function throughput({ loss, reorder, rtt, congestion }: Cell): Promise<number> {
  const line = { rate: RATE, queue: (RATE / 8000) * rtt, delay: rtt / 2, loss: loss / 100, reorder: reorder / 100, reorderDelay: 5 };
  const end = { congestion, core: { memory: 8 * MB } };
  const here = await fileBench({ seed: 'golden', link: line, files: [FILE], device: end, client: end });
  const from = here.simulation.now;
  await here.simulation.settle(downloadAll(here));
  expectNoFailure(here);
  return (8 * FILE) / (here.simulation.now - from) / 1000;
}
