/**
 * The runner of the mutants: which lists it accepts, which part it runs, and how it judges a run of tests. No mutant
 * runs here.
 */
import { describe, expect, test } from 'vitest';
import { describe as described, faults, type Mutant, mutated, parseMutant, partOf, readMutants, touchedAnd } from './list.ts';
import { type Report, verdict } from './tests.ts';

const root = new URL('../..', import.meta.url).pathname;
const sound: Mutant = {
  file: 'protocol/fifo.ts',
  search: 'export class Fifo',
  replace: 'export class Lifo',
  tests: ['test/protocol/fifo.test.ts'],
};

describe('the list', () => {
  test('keeps an entry unchanged, with and without a reason', () => {
    for (const entry of [sound, { ...sound, reason: 'the name is not seen' }])
      expect(parseMutant(entry, 'protocol', 'here')).toEqual(entry);
  });

  test.each<[string, unknown]>([
    ['null', null],
    ['another layer', { ...sound, file: 'client/platform.ts' }],
    ['no change', { ...sound, replace: sound.search }],
    ['an empty search text', { ...sound, search: '' }],
    ['no tests', { ...sound, tests: [] }],
    ['a file that is not a test', { ...sound, tests: ['protocol/fifo.ts'] }],
    ['an empty reason', { ...sound, reason: '' }],
    ['an unknown key', { ...sound, why: 'x' }],
  ])('refuses %s and names the entry', (_, entry) => {
    expect(() => parseMutant(entry, 'protocol', 'here')).toThrow(/^here: /);
  });

  test('has search texts that match exactly once, tests that exist, and no duplicates', () => {
    expect(faults([sound], root)).toEqual([]);
    expect(faults([{ ...sound, search: 'no such text' }], root)).toEqual([expect.stringContaining('occurs 0 times')]);
    expect(faults([{ ...sound, search: 'this' }], root)).toEqual([expect.stringMatching(/occurs \d+ times/)]);
    expect(faults([{ ...sound, file: 'protocol/none.ts' }], root)).toEqual([expect.stringContaining('occurs 0 times')]);
    expect(faults([{ ...sound, tests: ['test/none.test.ts'] }], root)).toEqual([expect.stringContaining('does not exist')]);
    expect(faults([sound, sound], root)).toEqual([expect.stringContaining('listed twice')]);
  });

  test('as it stands, matches the sources', () => {
    expect(faults(readMutants(root), root)).toEqual([]);
  });

  test('is split into parts that add up to the whole', () => {
    const mutants = Array.from({ length: 25 }, (_, index) => ({ ...sound, replace: `${index}` }));
    const parts = Array.from({ length: 10 }, (_, index) => partOf(mutants, index + 1, 10));
    expect(parts.map(({ length }) => length)).toEqual([3, 3, 3, 3, 3, 2, 2, 2, 2, 2]);
    expect(new Set(parts.flat())).toEqual(new Set(mutants));
  });

  test('has what a change touches and the part by turns, and nothing twice', () => {
    const other: Mutant = { ...sound, file: 'protocol/other.ts', tests: ['test/protocol/other.test.ts'] };
    const third: Mutant = { ...sound, file: 'protocol/third.ts' };
    expect(touchedAnd([sound, other, third], [sound], [])).toEqual([sound]);
    expect(touchedAnd([sound, other, third], [sound], ['protocol/third.ts', 'README.md'])).toEqual([third, sound]);
    expect(touchedAnd([sound, other, third], [sound], ['test/protocol/other.test.ts'])).toEqual([other, sound]);
    expect(touchedAnd([sound, other, third], [sound], ['test/protocol/fifo.test.ts'])).toEqual([sound, third]);
    expect(touchedAnd([sound, other, third], [other, third], ['test/protocol/fifo.test.ts'])).toEqual([sound, other, third]);
  });

  test('replaces text literally, $ included', () => {
    expect(mutated('a $1 b', { ...sound, search: '$1', replace: '$&$2' })).toBe('a $&$2 b');
    expect(described({ ...sound, search: 'if (x)\n    y', replace: '' })).toBe('protocol/fifo.ts: `if (x) y` → nothing');
  });
});

describe('a run of tests', () => {
  const file = (status: string, tests: readonly string[], message = ''): Report['testResults'][number] => ({
    ...{ name: 'x.test.ts', startTime: 0, endTime: 1, status, message },
    assertionResults: tests.map((each) => ({ fullName: `test that ${each}`, status: each })),
  });
  const report = (...testResults: Report['testResults']): Report => ({ testResults });

  test.each<[string, Report | null, number, string, string]>([
    ['passes', report(file('passed', ['passed'])), 0, '', 'survived'],
    ['has a failed test', report(file('failed', ['passed', 'failed', 'pending'])), 1, '', 'killed'],
    ['fails outside of its tests', report(file('passed', ['passed'])), 1, '', 'killed'],
    ['runs out of memory', null, 1, 'FATAL ERROR: JavaScript heap out of memory', 'killed'],
    ['cannot load a file', report(file('failed', [], 'SyntaxError'), file('passed', ['passed'])), 1, '', 'invalid'],
    ['runs no test', report(file('passed', ['pending'])), 0, '', 'invalid'],
    ['does not report', null, 1, 'no such option', 'invalid'],
  ])('that %s', (_, result, status, output, outcome) => {
    expect(verdict(result, status, output).outcome).toBe(outcome);
  });
});
