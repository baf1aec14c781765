/**
 * PROTOCOL.md is normative: its tables of numbers are compared with the code. ARCHITECTURE.md names only files that
 * exist.
 */
import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { CloseCode, StationCode, StreamCode, stationCodeMeaning } from '../../protocol/errors/index.ts';
import { sources, textOf } from './imports.ts';

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

describe('citations of PROTOCOL.md', () => {
  const page = read('PROTOCOL.md');
  const sections = new Set([...page.matchAll(/^#+ (?:Appendix )?([\dA-Z]+(?:\.\d+)*)\.? /gm)].map(([, number]) => number));

  it('name sections that exist', () => {
    const files = [
      'core-as',
      'bindings',
      'protocol',
      'platform',
      'runtime',
      'testing',
      'device',
      'client',
      'server',
      'cli',
      'test',
    ].flatMap((folder) => sources(folder));
    const cited = files.flatMap((file) =>
      [...textOf(file).matchAll(/PROTOCOL\.md[`)]* ?(?:§|section )(\d+(?:\.\d+)*)/g)].map(([text, number]) => ({ file, text, number })),
    );
    const own = [...page.matchAll(/\bsections? (\d+(?:\.\d+)*)/g), ...page.matchAll(/^\| .* → .* \| (\d+(?:\.\d+)*) \|$/gm)];
    expect(cited.length).toBeGreaterThan(10);
    const outside = [...page.matchAll(/RFC \d+[^.;]{0,40}\bsections? (\d+(?:\.\d+)*)/g)].map(([, number]) => number);
    expect(cited.filter(({ number }) => !sections.has(number!))).toEqual([]);
    expect(own.map(([, number]) => number).filter((number) => !sections.has(number!) && !outside.includes(number))).toEqual([]);
  });

  it('have the labels of the code', () => {
    const labels = [...page.matchAll(/"(svc [a-z0-9 ]+)"/g)].map(([, label]) => label!);
    const code = ['protocol', 'device']
      .flatMap((folder) => sources(folder))
      .map(textOf)
      .join('\n');
    const decoder = sources('test/independent/decoder').flatMap((file) =>
      [...textOf(file).matchAll(/'(svc [a-z0-9 ]+)'/g)].map(([, label]) => label!),
    );
    expect(labels.filter((label) => !code.includes(`'${label}'`))).toEqual([]);
    expect(decoder.filter((label) => !labels.includes(label))).toEqual([]);
  });
});

it.each(['ARCHITECTURE.md', 'SECURITY.md'])('%s has at most 12 kB', (name) => {
  expect(Buffer.byteLength(read(name))).toBeLessThanOrEqual(12_000);
});

describe('ARCHITECTURE.md', () => {
  it('names only files that exist', () => {
    const named = [
      ...read('ARCHITECTURE.md').matchAll(
        /`((?:core-as|bindings|protocol|platform|runtime|testing|device|client|server|cli|test|bench)\/[\w./-]+)`/g,
      ),
    ];
    expect(named.length).toBeGreaterThan(10);
    expect(named.map(([, path]) => path as string).filter((path) => !existsSync(new URL(path, root)))).toEqual([]);
  });
});
