/** The position where a text stops being JSON, compared with `JSON.parse`. */
import { expect, test } from 'vitest';
import { jsonFault } from '../../../platform/node/json-place.ts';

test.each<[string, number, number, string]>([
  ['', 1, 1, 'it ends here, a value is expected'],
  ['{\n  "a": 1\n  "b": 2\n}', 3, 3, '"," or "}" is expected'],
  ['{"a": [1, 2,]}', 1, 13, 'a value is expected'],
  ['{"a": 1,\n}', 2, 1, 'a name in double quotes is expected'],
  ["{'a': 1}", 1, 2, 'a name in double quotes is expected'],
  ['{"a" 1}', 1, 6, '":" is expected'],
  ['{"a": 08}', 1, 7, 'a value is expected'],
  ['{"a": "x\n"}', 1, 7, 'this text is not closed, or has a character that must be escaped'],
  ['{"a": "\\x"}', 1, 7, 'this text is not closed, or has a character that must be escaped'],
  ['[1, // one\n2]', 1, 5, 'a value is expected'],
  ['{} {}', 1, 4, 'nothing more is expected'],
  ['[1', 1, 3, 'it ends here, "," or "]" is expected'],
])('%j', (text, line, column, problem) => {
  expect(jsonFault(text)).toEqual({ line, column, problem });
});

test('a document truncated or with a wrong character at any position is judged like by JSON.parse', () => {
  const document = '{"a": [1, -2.5e+3, true, null, {"b\\u00e9": "\\n"}, [], {}], "c": false}';
  const texts = [...document].flatMap((_, at) => [document.slice(0, at), `${document.slice(0, at)}x${document.slice(at + 1)}`]);
  for (const text of [document, ...texts]) expect([text, jsonFault(text) === null]).toEqual([text, parses(text)]);
});

test('nesting is not bounded by the stack', () => {
  expect(jsonFault('['.repeat(100_000))).toMatchObject({ column: 100_001 });
});

function parses(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
