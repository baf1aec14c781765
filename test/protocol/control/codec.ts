/** Tests that every body of the control plane passes. */
import { describe, expect, test } from 'vitest';
import { type CborValue, decode, encode } from '../../../protocol/cbor/index.ts';
import { RemoteError } from '../../../protocol/errors/index.ts';

export interface Codec {
  readonly encode: (value: never) => Uint8Array;
  readonly decode: (payload: Uint8Array) => unknown;
}

/** Name, codec, value, and the value on the wire. */
export type Body<Wire = CborValue> = readonly [name: string, codec: Codec, value: unknown, wire: Wire];

/** Tests each codec: round trip, fields of later versions, and cut bodies. */
export function describeBodies(bodies: readonly Body[]): void {
  describe.each(bodies)('%s', (_, codec, value, wire) => {
    test('has its names on the wire and survives a round trip', () => {
      const payload = codec.encode(value as never);
      expect(decode(payload)).toEqual(wire);
      expect(codec.decode(payload)).toEqual(value);
    });

    test('ignores unknown fields and refuses a body cut anywhere', () => {
      const payload = codec.encode(value as never);
      if (!Array.isArray(wire)) expect(codec.decode(encode({ ...(wire as object), Newer: [1, 2] }))).toEqual(value);
      for (let length = 0; length < payload.length; length++) expect(() => codec.decode(payload.subarray(0, length))).toThrow(RemoteError);
    });
  });
}
