/**
 * The test vectors of PROTOCOL.md are what this implementation makes of the same inputs.
 * `test/independent/vectors.test.ts` recomputes them without it.
 */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { appendixOf, parse, render } from '../vectors/appendix.ts';
import { appendix } from '../vectors/generate.ts';

const protocol = readFileSync(new URL('../../PROTOCOL.md', import.meta.url), 'utf8');

describe('the appendix of PROTOCOL.md', () => {
  it('is what `npm run vectors` prints', { tags: ['slow'] }, async () => {
    expect(appendixOf(protocol)).toBe(await appendix());
  });

  it('holds at least 70 values', () => {
    expect(parse(appendixOf(protocol)).size).toBeGreaterThanOrEqual(70);
  });
});

describe('the text of vectors', () => {
  const values = { bytes: Uint8Array.from({ length: 40 }, (_, index) => index), text: 'a "b" = c', number: 42, none: new Uint8Array(0) };

  it('preserves the written values', () => {
    const text = render(['Introduction.'], [{ title: 'One', text: ['Text.'], values }]);
    expect(Object.fromEntries(parse(text))).toEqual(values);
  });

  it('is refused with a line that is not a value, and with a repeated label', () => {
    const block = (...lines: string[]) => ['```text', ...lines, '```', ''].join('\n');
    expect(parse(block('a =', '  00ff', 'b = 1')).size).toBe(2);
    expect(() => parse(block('a =', '  00fg'))).toThrow('not a vector');
    expect(() => parse(block('a'))).toThrow('not a vector');
    expect(() => parse(block('a = 1') + block('a = 2'))).toThrow('comes twice');
  });
});
