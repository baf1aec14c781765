/**
 * The test vectors of docs/vectors.json are what this implementation makes of the same inputs.
 * `test/independent/vectors.test.ts` recomputes them without it.
 */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { vectors } from '../vectors/generate.ts';
import { byLabel, read, write } from '../vectors/values.ts';

const textOf = (name: string): string => readFileSync(new URL(`../../${name}`, import.meta.url), 'utf8');
const file = textOf('docs/vectors.json');

describe('docs/vectors.json', () => {
  it('is what `npm run vectors` prints', { tags: ['slow'] }, async () => {
    expect(file).toBe(await vectors());
  });

  it('holds at least 70 values', () => {
    expect(byLabel(read(file)).size).toBeGreaterThanOrEqual(70);
  });

  it('has the sections that appendix A of PROTOCOL.md explains', () => {
    const [, appendix = ''] = textOf('PROTOCOL.md').split('\n## Appendix A. Test vectors\n');
    const explained = [...appendix.matchAll(/^\| ([^|]+) \| .+ \|$/gm)].map(([, title]) => title).slice(1);
    expect(explained).toEqual(read(file).map(({ title }) => title));
  });
});

describe('vectors', () => {
  const values = { bytes: Uint8Array.from({ length: 40 }, (_, index) => index), text: 'a "b" = c', number: 42, none: new Uint8Array(0) };

  it('are read as they were written', () => {
    const sections = [{ title: 'One', values }];
    expect(read(write(sections))).toEqual(sections);
  });

  it('are refused with a value of another form, and with a repeated label', () => {
    const one = (value: unknown) => JSON.stringify([{ title: 'One', values: { a: value } }]);
    for (const value of ['00f', '00fg', '00FF', null, true, [], { hex: '00' }]) expect(() => read(one(value))).toThrow('not a vector');
    const twice = JSON.stringify([
      { title: 'One', values: { a: 1 } },
      { title: 'Two', values: { a: 2 } },
    ]);
    expect(() => read(twice)).toThrow('comes twice');
  });
});
