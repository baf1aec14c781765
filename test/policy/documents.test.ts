/**
 * PROTOCOL.md is normative: its tables of numbers are compared with the code. ARCHITECTURE.md names only files that
 * exist.
 */
import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { CloseCode, StationCode, StreamCode, stationCodeMeaning } from '../../protocol/errors/index.ts';

const root = new URL('../..', import.meta.url);
const read = (name: string) => readFileSync(new URL(name, root), 'utf8');
const rows = [...read('PROTOCOL.md').matchAll(/^\| ([A-Z_]+) \| (0x[0-9a-f]+|\d+) \| ([^|]+) \|$/gm)].map(([, name, number, last]) => ({
  name: name as string,
  number: Number(number),
  last: last as string,
}));

describe('PROTOCOL.md', () => {
  it('lists every close code and stream code with its number', () => {
    const listed = rows.filter(({ last }) => !/^\d\.\d\d$/.test(last)).map(({ name, number }) => [name, number]);
    expect(listed).toEqual([...Object.entries(CloseCode), ...Object.entries(StreamCode)]);
  });

  it('lists every station code with its number and status', () => {
    const listed = rows.filter(({ last }) => /^\d\.\d\d$/.test(last)).map(({ name, number, last }) => [name, number, last]);
    const known = Object.entries(StationCode).map(([name, number]) => [
      name,
      number,
      ((stationCodeMeaning(number)?.status ?? 0) / 100).toFixed(2),
    ]);
    expect(listed).toEqual(known);
  });
});

describe('ARCHITECTURE.md', () => {
  it('names only files that exist', () => {
    const named = [
      ...read('ARCHITECTURE.md').matchAll(/`((?:core-as|bindings|protocol|transport|device|client|server|cli|test|bench)\/[\w./-]+)`/g),
    ];
    expect(named.length).toBeGreaterThan(10);
    expect(named.map(([, path]) => path as string).filter((path) => !existsSync(new URL(path, root)))).toEqual([]);
  });
});
