/** The group of CPace. That of version 1 is ristretto255 (RFC 9496) as in CPACE-RISTR255-SHA512, over noble. */
import { ristretto255, ristretto255_hasher } from '@noble/curves/ed25519.js';
import { isAllZero } from '../identity/index.ts';
import { orElse } from '../or-else.ts';
import { SHARE_LENGTH } from './messages.ts';

/** A group of prime order. Elements and scalars are bytes, so that scalars can be wiped. */
export interface CpaceGroup {
  /** Domain separation, `G.DSI` of the draft. */
  readonly dsi: string;
  /** Length of an element, bytes. */
  readonly elementLength: number;
  /** Returns a secret nonzero scalar. */
  sampleScalar(randomBytes: (length: number) => Uint8Array): Uint8Array;
  /** Maps 64 uniform bytes to an element. */
  generator(uniform: Uint8Array): Uint8Array;
  scalarMult(scalar: Uint8Array, element: Uint8Array): Uint8Array;
  /**
   * As `scalarMult`, for an element from the network: null where `scalar_mult_vfy` of the draft returns the neutral
   * element, which ends the run.
   */
  scalarMultVfy(scalar: Uint8Array, element: Uint8Array): Uint8Array | null;
}

/** Length of a scalar, bytes. */
const LENGTH = 32;

const { Point } = ristretto255;

export const ristretto255Group: CpaceGroup = {
  dsi: 'CPaceRistretto255',
  elementLength: SHARE_LENGTH,
  sampleScalar,
  generator: (uniform) => ristretto255_hasher.deriveToCurve!(uniform).toBytes(),
  scalarMult: (scalar, element) => multiply(scalar, Point.fromBytes(element)),
  scalarMultVfy(scalar, element) {
    // It accepts nothing but the one encoding of an element (RFC 9496 §4.3.1).
    const point = orElse(() => Point.fromBytes(element), null);
    return point === null || point.is0() ? null : multiply(scalar, point);
  },
};

type Element = ReturnType<typeof Point.fromBytes>;

/** Returns a scalar uniform below 2^252, which is as good as uniform below the order (draft §8.3). */
function sampleScalar(randomBytes: (length: number) => Uint8Array): Uint8Array {
  for (;;) {
    const scalar = Uint8Array.from(randomBytes(LENGTH));
    scalar[LENGTH - 1]! &= 0x0f;
    if (!isAllZero(scalar)) return scalar;
  }
}

/** Multiplies in constant time, as far as noble can (docs/cryptography.md). */
function multiply(scalar: Uint8Array, point: Element): Uint8Array {
  return point.multiply(toNumber(scalar)).toBytes();
}

function toNumber(littleEndian: Uint8Array): bigint {
  let number = 0n;
  for (let at = littleEndian.length - 1; at >= 0; at--) number = (number << 8n) | BigInt(littleEndian[at]!);
  return number;
}
