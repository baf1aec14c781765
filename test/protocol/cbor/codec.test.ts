import { expect, test } from 'vitest';
import { decode, encode } from '../../../protocol/cbor/index.ts';
test('round trip', () => {
  const v = { a: [1, -1, 2 ** 40, -(2 ** 40), Number.MAX_SAFE_INTEGER, -Number.MAX_SAFE_INTEGER, 1.5, null, true, 'ü', new Uint8Array([1, 2])], b: { constructor: 1 }, c: `\ufeff${'x'.repeat(62)}` };
  expect(decode(encode(v))).toEqual(v);
});
