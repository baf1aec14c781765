/** `bench/README.md` is short, and its table is what `npm run bench -- report` makes of the run that it names. */
import { readFileSync } from 'node:fs';
import { describe, expect, it, test } from 'vitest';
import { isProfile, nameOf, profileOf, type Result, readResult, runNames } from '../../bench/results.ts';
import { resultTable, tabledRun, withTable } from '../../bench/results-table.ts';
import { fromRoot } from '../../bench/root.ts';

const readme = readFileSync(fromRoot('bench/README.md'), 'utf8');
const MAX_WORDS = 900;

const result: Result = {
  date: '2026-01-02T03:04:05.678Z',
  profile: 'some-cpu-2',
  cpu: { model: 'Some CPU', cores: 2 },
  platform: 'linux x64',
  node: 'v20.0.0',
  load: 0.1,
  commit: '0123456789abcdef0123456789abcdef01234567',
  modified: false,
  command: 'npm run bench -- record stream,memory',
  benches: {
    stream: {
      bench: 'stream',
      rows: [{ case: 'direct', unit: 'MB/s', ours: 100 }],
      goals: [
        { case: 'direct', peer: 'udx', atLeast: 1.4, value: 1.502, reached: true },
        { case: 'direct', peer: 'bare', atLeast: 0.57, value: 0.5, reached: false },
        { case: 'direct', peer: 'iroh', atLeast: 1, reached: null },
      ],
      absent: { iroh: 'not installed' },
    },
    memory: {
      bench: 'memory',
      rows: [{ case: 'idle', unit: 'bytes', ours: 2345 }],
      goals: [{ case: 'idle', atMost: 4096, value: 2345, reached: true }],
    },
  },
  failed: { browser: 'there is no\nChromium' },
};

describe('bench/README.md', () => {
  it('has the table that its run gives', () => {
    expect(withTable(readme, readResult(tabledRun(readme)))).toBe(readme);
  });

  it(`has ${MAX_WORDS} words at most`, () => {
    expect(readme.split(/\s+/).filter(Boolean).length).toBeLessThanOrEqual(MAX_WORDS);
  });
});

describe('a recorded run', () => {
  test.each(runNames())('%s says what is needed to run it again', (name) => {
    const run = readResult(name);
    expect(Date.parse(run.date)).not.toBeNaN();
    expect(isProfile(run.profile)).toBe(true);
    expect(run.cpu).toEqual({ model: expect.any(String), cores: expect.any(Number) });
    expect(run.node).toMatch(/^v\d+\.\d+\.\d+$/);
    expect(run.commit).toMatch(/^[0-9a-f]{40}$/);
    expect(run.command).toMatch(/^npm run bench -- record/);
    const documents = Object.entries(run.benches);
    expect(documents.length).toBeGreaterThan(0);
    for (const [bench, document] of documents) {
      expect(document).toMatchObject({ bench, rows: expect.any(Array), goals: expect.any(Array) });
      expect(document.rows.length).toBeGreaterThan(0);
    }
  });

  it('is named after its day and its machine', () => {
    expect(nameOf(result)).toBe('2026-01-02-some-cpu-2');
    expect(profileOf('Intel(R) Xeon(R) CPU @ 2.80GHz', 4)).toBe('intel-xeon-cpu-2-80ghz-4');
    expect(profileOf('', 1)).toBe('unknown-1');
    expect(['amd-epyc-2', 'a']).toSatisfy((names: string[]) => names.every(isProfile));
    expect(['', '../a', 'A', 'a-', 'a b']).toSatisfy((names: string[]) => !names.some(isProfile));
  });

  it('that is not there is not read', () => {
    expect(() => readResult('1999-01-01-abacus-1')).toThrow('no run "1999-01-01-abacus-1"');
  });
});

describe('the table of a run', () => {
  const lines = resultTable(result).split('\n');

  it('names the machine, the commit and the command', () => {
    expect(lines.slice(0, 3)).toEqual([
      'Run [`2026-01-02-some-cpu-2`](results/2026-01-02-some-cpu-2.json)',
      'by `npm run bench -- record stream,memory`',
      'on 2 × Some CPU, linux x64, Node v20.0.0, load 0.1; commit 0123456789.',
    ]);
    expect(resultTable({ ...result, modified: true })).toContain('commit 0123456789 with changes.');
    expect(resultTable({ ...result, commit: null })).toContain('commit unknown.');
  });

  it('has the goals that were reached, those that were missed or not measured, and why a bench did not run', () => {
    expect(lines.slice(4)).toEqual([
      '| bench | reached | missed |',
      '|---|---|---|',
      '| `stream` | `direct` 1.5 × udx (≥ 1.4) | `direct` 0.5 × bare (≥ 0.57)<br>`direct` not measured beside iroh (≥ 1) |',
      '| `memory` | `idle` 2,345 bytes (≤ 4096) | |',
      '| `browser` | | did not run: there is no Chromium |',
    ]);
  });

  it('counts the goals of a bench that has many', () => {
    const goals = Array.from({ length: 20 }, (_, index) => ({
      ...{ case: `cell-${index}`, time: 'p99' as const, atMost: 10, value: index + 1, reached: index < 10 },
    }));
    const many = resultTable({ ...result, benches: { nat: { bench: 'nat', rows: [], goals } } });
    expect(many).toContain('| `nat` | 10 of 20 goals | `cell-10` 11 ms p99 (≤ 10)<br>');
    expect(many).not.toContain('cell-9`');
  });

  it('replaces the one that stands there, and nothing else', () => {
    const before = 'a\n<!-- run x -->\nold\n<!-- end of run -->\nb $& \n';
    const after = withTable(before, result);
    expect(tabledRun(after)).toBe('2026-01-02-some-cpu-2');
    expect(after.startsWith('a\n<!-- run ') && after.endsWith(' -->\nb $& \n')).toBe(true);
    expect(after).not.toContain('old');
    expect(withTable(after, result)).toBe(after);
    expect(() => withTable('without comments', result)).toThrow('no comments');
  });
});
