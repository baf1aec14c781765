/**
 * The golden table: Mbit/s of one download by loss, round-trip time and congestion control, over a line of 50 Mbit/s whose queue holds one
 * bandwidth-delay product. A cell may get better, and then the table is to be raised; it must not get worse by more than a fifth (luck with few
 * losses is worth a tenth) unless the change that makes it so says why and lowers it.
 *
 * `SVC_GOLDEN=1 npx vitest run test/transport/sim/golden.test.ts` prints the table as it is now.
 */
import { describe, expect, it } from 'vitest';
import { slice } from '../../support/size.ts';
import { downloadAll, expectNoFailure, MB, world } from '../interop/support.ts';

const RATE = 50e6;
const FILE = 4 * MB;
/** Of the golden figure. */
const LEAST = 0.8;
const controllers = ['newreno', 'cubic', 'bbr'] as const;

/** By loss in percent and round-trip time in ms: newreno, cubic, bbr. */
const golden: readonly (readonly [loss: number, rtt: number, ...figures: number[]])[] = [
  [0, 10, 45.03, 45.9, 42.45],
  [0, 50, 31.95, 31.31, 30.77],
  [0, 200, 11.95, 11.95, 11.88],
  [0.1, 10, 29.01, 34.7, 42.44],
  [0.1, 50, 30.93, 31.83, 31.74],
  [0.1, 200, 9.35, 11.59, 11.65],
  [1, 10, 9.63, 11.95, 42.1],
  [1, 50, 2.09, 2.7, 27.56],
  [1, 200, 0.58, 0.87, 9.49],
  [5, 10, 2.79, 3.36, 42.89],
  [5, 50, 0.62, 0.74, 22.4],
  [5, 200, 0.19, 0.23, 5.99],
];

describe('golden table', () => {
  const cells = golden.flatMap(([loss, rtt, ...figures]) =>
    controllers.map((congestion, i) => ({ loss, rtt, congestion, figure: figures[i]! })),
  );

  it.each(slice(cells, 12))('$congestion keeps $figure Mbit/s at $loss % loss and $rtt ms', async ({ loss, rtt, congestion, figure }) => {
    expect(await throughput(loss, rtt, congestion)).toBeGreaterThanOrEqual(figure * LEAST);
  });

  const print = async () => {
    for (const [loss, rtt] of golden) {
      const figures: string[] = [];
      for (const congestion of controllers) figures.push((await throughput(loss, rtt, congestion)).toFixed(2));
      process.stdout.write(`  [${loss}, ${rtt}, ${figures.join(', ')}],\n`);
    }
  };
  if (process.env.SVC_GOLDEN !== undefined) it('prints itself', print);
});

async function throughput(loss: number, rtt: number, congestion: (typeof controllers)[number]): Promise<number> {
  const line = { rate: RATE, queue: (RATE / 8000) * rtt, delay: rtt / 2, loss: loss / 100 };
  const here = await world({ seed: 'golden', link: line, files: [FILE], device: { congestion }, client: { congestion } });
  const from = here.simulation.now;
  await here.simulation.settle(downloadAll(here));
  expectNoFailure(here);
  return (8 * FILE) / (here.simulation.now - from) / 1000;
}
