/** Lost datagrams are reported once a minute, as what was lost since. */
import { expect, test } from 'vitest';
import { type DatagramLoss, DatagramLossReport, lossText } from '../../../runtime/session/index.ts';
import { Simulation } from '../../../testing/index.ts';

const NONE: DatagramLoss = { tooLong: 0, dropped: 0, incomplete: 0, lost: 0 };

test('a minute with losses is one report, one without is none, and the end reports the rest', async () => {
  const simulation = new Simulation();
  const seen: DatagramLoss[] = [];
  let total = NONE;
  const report = new DatagramLossReport(
    simulation.host('here').clock,
    () => total,
    (loss) => seen.push(loss),
  );
  report.start();
  report.start();
  total = { ...NONE, dropped: 2, lost: 1 };
  await simulation.run(60_000);
  await simulation.run(60_000);
  total = { ...total, dropped: 5 };
  report.stop();
  await simulation.run(120_000);
  expect(seen).toEqual([
    { ...NONE, dropped: 2, lost: 1 },
    { ...NONE, dropped: 3 },
  ]);
});

test('the text names each reason once, and no other', () => {
  expect(lossText({ ...NONE, lost: 3, incomplete: 1 }, 'the device')).toBe(
    'datagrams of UDP services were lost: 3 on the way to the device; 1 from the device arrived only in part',
  );
  expect(lossText({ ...NONE, dropped: 2, tooLong: 4 }, 'clients')).toBe(
    'datagrams of UDP services were lost: 2 here, for lack of room or of a connection; 4 too long: the other end needs an update',
  );
});
