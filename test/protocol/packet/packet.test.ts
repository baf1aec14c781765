/** Packet codecs: round trips, layout, mac1, and hostile bytes. */
import { hex } from '@scure/base';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  DATA_OVERHEAD,
  decodeComplete,
  decodeInitiate,
  decodeReset,
  decodeRespond,
  decodeRetry,
  decodeVersions,
  encodeComplete,
  encodeInitiate,
  encodeReset,
  encodeRespond,
  encodeRetry,
  encodeVersions,
  idHigh,
  idLow,
  isData,
  isRoute,
  mac1Holds,
  mac1Key,
  packetId,
  padded,
  RESET_LENGTH,
  routed,
} from '../../../protocol/packet/index.ts';
import { nativeHost, nobleHost } from '../../support/crypto.ts';

fc.configureGlobal({ seed: 1 });

const crypto = nativeHost(1);
const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length });
const id = bytes(8);
const some = fc.uint8Array({ minLength: 1, maxLength: 300 });
const byte = fc.integer({ min: 0, max: 255 });
const initiate = fc.record({
  version: byte,
  suite: byte,
  source: id,
  token: fc.uint8Array({ maxLength: 128 }),
  message: fc.uint8Array({ maxLength: 300 }),
});

describe('round trips', () => {
  it('preserve Initiate, padded and not', () => {
    const key = mac1Key(crypto, 'station');
    fc.assert(
      fc.property(initiate, (fields) => {
        const packet = encodeInitiate(crypto, key, fields);
        for (const datagram of [packet, padded(packet)]) {
          expect(decodeInitiate(datagram)).toEqual(fields);
          expect(mac1Holds(crypto, key, datagram)).toBe(true);
        }
        expect(padded(packet)).toHaveLength(1200);
      }),
    );
  });

  it('preserve Retry, Respond, Complete, Versions and Reset', () => {
    const cases = [
      [fc.record({ destination: id, token: fc.uint8Array({ minLength: 1, maxLength: 128 }) }), encodeRetry, decodeRetry],
      [fc.record({ destination: id, source: id, message: some }), encodeRespond, decodeRespond],
      [fc.record({ destination: id, message: some }), encodeComplete, decodeComplete],
      [
        fc.record({ destination: id, versions: fc.uint8Array({ maxLength: 255 }), suites: fc.uint8Array({ maxLength: 255 }) }),
        encodeVersions,
        decodeVersions,
      ],
      [fc.record({ id, token: bytes(16) }), encodeReset, decodeReset],
    ] as const;
    for (const [fields, encode, decode] of cases) {
      fc.assert(
        fc.property(fields as fc.Arbitrary<never>, (value) => {
          expect(decode(encode(value))).toEqual(value);
        }),
      );
    }
  });

  it('preserve Route around Data', () => {
    fc.assert(
      fc.property(id, id, bytes(20), (route, destination, rest) => {
        const data = Uint8Array.of(0xc0, ...destination, ...rest);
        const packet = routed(route, data);
        expect(isRoute(packet)).toBe(true);
        expect(packetId(packet, 0)).toEqual(route);
        expect(isData(packet, 9)).toBe(true);
        expect(packetId(packet, 9)).toEqual(destination);
        const view = new DataView(destination.buffer, destination.byteOffset);
        expect([idHigh(packet, 9), idLow(packet, 9)]).toEqual([view.getUint32(0), view.getUint32(4)]);
        expect(isRoute(routed(route, packet))).toBe(false);
      }),
    );
  });
});

describe('the layout', () => {
  it('of an Initiate is that of PROTOCOL.md §2', () => {
    const packet = encodeInitiate(crypto, new Uint8Array(32), {
      version: 1,
      suite: 2,
      source: hex.decode('0102030405060708'),
      token: hex.decode('aabb'),
      message: hex.decode('ccddee'),
    });
    expect(hex.encode(packet.subarray(0, 13))).toBe('80010201020304050607080006');
    expect(hex.encode(packet.subarray(29))).toBe('02aabbccddee');
  });

  it('of an Initiate has mac1: HMAC under SHA-256("svc mac1" ‖ name), with zeros in place of mac1', () => {
    const fields = {
      version: 1,
      suite: 1,
      source: new Uint8Array(8).fill(7),
      token: new Uint8Array(0),
      message: new Uint8Array(32).fill(9),
    };
    const other = nobleHost(1);
    const packet = encodeInitiate(crypto, mac1Key(crypto, 'device:p.d'), fields);
    const key = other.sha256(new TextEncoder().encode('svc mac1device:p.d'));
    const zeroed = packet.slice();
    zeroed.fill(0, 13, 29);
    expect(packet.subarray(13, 29)).toEqual(other.hmacSha256(key, zeroed).subarray(0, 16));
  });

  it('of a Reset is shorter than any Data packet', () => {
    expect(RESET_LENGTH).toBeLessThan(DATA_OVERHEAD);
  });
});

describe('mac1', () => {
  it('covers every bit up to the end of `length`, and nothing of the padding', () => {
    const key = mac1Key(crypto, 'station');
    const packet = encodeInitiate(crypto, key, {
      version: 1,
      suite: 1,
      source: new Uint8Array(8),
      token: Uint8Array.of(1, 2, 3),
      message: new Uint8Array(32),
    });
    const datagram = padded(packet);
    for (let bit = 0; bit < packet.length * 8; bit++) {
      const damaged = datagram.slice();
      damaged[bit >> 3]! ^= 1 << (bit & 7);
      const holds = decodeInitiate(damaged) !== null && mac1Holds(crypto, key, damaged);
      expect(holds, `bit ${bit}`).toBe(false);
    }
    expect(mac1Holds(crypto, key, datagram.fill(0xff, packet.length))).toBe(true);
    expect(mac1Holds(crypto, mac1Key(crypto, 'station2'), datagram)).toBe(false);
  });
});

describe('hostile bytes', () => {
  it('decode to null or fields, and never throw', () => {
    const decoders = [decodeInitiate, decodeRetry, decodeRespond, decodeComplete, decodeVersions, decodeReset];
    fc.assert(
      fc.property(
        fc.constantFrom(0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x88, 0xc0, 0xe0, 0),
        fc.uint8Array({ maxLength: 80 }),
        (type, rest) => {
          const packet = Uint8Array.of(type, ...rest);
          for (const decode of decoders) decode(packet);
          isData(packet, 0);
          isRoute(packet);
        },
      ),
      { numRuns: 2000 },
    );
    for (const decode of decoders) expect(decode(new Uint8Array(0))).toBeNull();
    expect([isData(new Uint8Array(0), 0), isRoute(new Uint8Array(0))]).toEqual([false, false]);
  });
});
