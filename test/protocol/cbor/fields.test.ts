/** Typed readers return a value within its limits, or throw an error that names the field. */
import { describe, expect, test } from 'vitest';
import {
  arrayField,
  bool,
  bytes,
  map,
  mapField,
  optionalArrayField,
  optionalBool,
  optionalBytes,
  optionalMapField,
  optionalText,
  optionalUint,
  text,
  texts,
  uint,
  utf8Length,
} from '../../../protocol/cbor/index.ts';
import { parseError } from '../parse-error.ts';

const body = map({
  Text: 'größe',
  Number: 300,
  Bytes: new Uint8Array(8),
  Flag: false,
  Map: { a: 1 },
  List: ['a', 'b'],
  Null: null,
  Negative: -1,
  Float: 0.5,
  More: 'ignored',
});

describe('typed readers', () => {
  test('return the values of fields', () => {
    expect(text(body, 'Text', { max: 7 })).toBe('größe');
    expect(uint(body, 'Number', { min: 300, max: 300 })).toBe(300);
    expect(bytes(body, 'Bytes', { exact: 8 })).toHaveLength(8);
    expect(bytes(body, 'Bytes', { max: 8 })).toHaveLength(8);
    expect(bool(body, 'Flag')).toBe(false);
    expect(uint(mapField(body, 'Map'), 'a')).toBe(1);
    expect(texts(arrayField(body, 'List', 2), 'List', { max: 1 })).toEqual(['a', 'b']);
  });

  test.each([
    ['Text is longer than 6 bytes', () => text(body, 'Text', { max: 6 })],
    ['Text is shorter than 8 bytes', () => text(body, 'Text', { min: 8, max: 10 })],
    ['Number is not text', () => text(body, 'Number', { max: 6 })],
    ['Number is not between 0 and 299', () => uint(body, 'Number', { max: 299 })],
    ['Number is not between 301 and 400', () => uint(body, 'Number', { min: 301, max: 400 })],
    ['Negative is not an unsigned integer', () => uint(body, 'Negative')],
    ['Float is not an unsigned integer', () => uint(body, 'Float')],
    ['Bytes does not have 9 bytes', () => bytes(body, 'Bytes', { exact: 9 })],
    ['Bytes does not have 0 to 7 bytes', () => bytes(body, 'Bytes', { max: 7 })],
    ['Text is not a byte string', () => bytes(body, 'Text', { max: 7 })],
    ['Number is not a boolean', () => bool(body, 'Number')],
    ['List is not a map', () => mapField(body, 'List')],
    ['Bytes is not a map', () => mapField(body, 'Bytes')],
    ['Map is not an array', () => arrayField(body, 'Map', 2)],
    ['List has more than 1 entries', () => arrayField(body, 'List', 1)],
    ['List[0] is longer than 0 bytes', () => texts(arrayField(body, 'List', 2), 'List', { max: 0 })],
    ['Absent is missing', () => text(body, 'Absent', { max: 6 })],
    ['Null is missing', () => uint(body, 'Null')],
    ['constructor is missing', () => mapField(body, 'constructor')],
    ['body is not a map', () => map(null)],
    ['body is not a map', () => map([])],
  ])('%s', (expected, run) => {
    expect(parseError(run)).toBe(expected);
  });

  test.each(['Absent', 'Null', 'constructor'])('an optional %s is undefined', (name) => {
    const found = [
      optionalText(body, name, { max: 1 }),
      optionalUint(body, name),
      optionalBytes(body, name, {}),
      optionalBool(body, name),
      optionalMapField(body, name),
      optionalArrayField(body, name, 1),
    ];
    expect(found).toEqual(Array.from({ length: 6 }));
  });

  test('optional readers check what is there', () => {
    expect(parseError(() => optionalText(body, 'Number', { max: 6 }))).toBe('Number is not text');
    expect(parseError(() => optionalUint(body, 'Text'))).toBe('Text is not an unsigned integer');
  });

  test.each(['', 'abc', 'ü', '水', '\u{10151}', 'aü水\u{10151}', '\uffff\u07ff\u0800'])(
    'utf8Length of %o is that of its encoding',
    (sample) => {
      expect(utf8Length(sample)).toBe(new TextEncoder().encode(sample).length);
    },
  );
});
