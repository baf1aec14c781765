/** The report of a bench: ratios, goals beside their rows, and peers that could not be measured. */
import { describe, expect, it } from 'vitest';
import { document, percentile, type Report, spread, table } from '../../bench/report.ts';

const report: Report = {
  bench: 'stream',
  about: 'a stream.',
  rows: [
    { case: 'direct', unit: 'MB/s', better: 'higher', ours: spread([90, 100, 120]), peers: { udx: spread([50]), bare: spread([200]) } },
    { case: 'memory', unit: 'bytes', better: 'lower', ours: spread([5000]), peers: {} },
  ],
  goals: [
    { case: 'direct', peer: 'udx', atLeast: 1.4 },
    { case: 'direct', peer: 'bare', atLeast: 0.57 },
    { case: 'direct', peer: 'iroh', atLeast: 1 },
    { case: 'memory', atMost: 4096 },
  ],
  absent: { iroh: 'not installed' },
};

describe('a report', () => {
  it('as a table shows each goal beside its ratio, whether it is reached, and why a peer has none', () => {
    const lines = table(report).split('\n');
    const line = (...parts: string[]) => lines.find((each) => parts.every((part) => each.includes(part)));
    expect(line('direct', '100 (90 … 120)', '2 ×', '≥ 1.4 × udx reached', '≥ 0.57 × bare MISSED')).toBeDefined();
    expect(line('memory', '5,000', '≤ 4096 MISSED')).toBeDefined();
    expect(line('iroh', 'not measured: not installed')).toBeDefined();
    expect(line('goal: direct ≥ 1 × iroh: not measured')).toBeDefined();
  });

  it('with many peers stands one below the other', () => {
    const [first] = report.rows;
    const peers = Object.fromEntries(['a', 'b', 'c', 'udx'].map((name) => [name, spread([50])]));
    const lines = table({ ...report, rows: [{ ...first!, peers }] }).split('\n');
    expect(lines.find((each) => /^ +udx .* 2 × +≥ 1.4 × udx reached$/.test(each))).toBeDefined();
  });

  it('as JSON has medians, ratios, ranges, goals with what was reached, and reasons', () => {
    expect(JSON.parse(document(report))).toMatchObject({
      bench: 'stream',
      rows: [
        { case: 'direct', ours: 100, peers: { udx: 50, bare: 200 }, ratio: { udx: 2, bare: 0.5 }, range: { ours: [90, 120] } },
        { case: 'memory', ours: 5000 },
      ],
      goals: [
        { case: 'direct', peer: 'udx', atLeast: 1.4, value: 2, reached: true },
        { peer: 'bare', value: 0.5, reached: false },
        { peer: 'iroh', reached: null },
        { case: 'memory', atMost: 4096, value: 5000, reached: false },
      ],
      absent: { iroh: 'not installed' },
    });
  });

  it('refuses to be made of nothing', () => {
    expect(() => spread([])).toThrowError('measured nothing');
    expect(percentile([5, 1, 4, 2, 3], 50)).toBe(3);
    expect(percentile([], 50)).toBeNaN();
  });
});
