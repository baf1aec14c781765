/**
 * CPACE-RISTR255-SHA512 as PROTOCOL.md §8 uses it (draft-irtf-cfrg-cpace-21), over the ristretto255 of @noble/curves.
 */
import { createHash, createHmac, scryptSync } from 'node:crypto';
import { ristretto255, ristretto255_hasher } from '@noble/curves/ed25519.js';
import { join, sha256, u32 } from './crypto.ts';

const DSI = 'CPaceRistretto255';
/** Bytes of a block of SHA-512. */
const BLOCK = 128;
const { Point } = ristretto255;

/** What both ends know. */
export interface Exchange {
  readonly password: string;
  readonly salt: Uint8Array;
  readonly handshakeHash: Uint8Array;
  readonly run: number;
  readonly clientFingerprint: string;
  readonly deviceFingerprint: string;
  readonly productId: string;
  readonly deviceId: string;
  readonly username: string;
}

/** scrypt of section 8, Kdf 1. */
export function scryptValue({ password, salt }: Exchange): Buffer {
  return scryptSync(password, salt, 32, { N: 2 ** 14, r: 8, p: 1 });
}

/** PRS, sid, and CI of an exchange with Kdf 1. */
export function inputsOf(exchange: Exchange): { prs: Buffer; sid: Buffer; ci: Buffer } {
  const { handshakeHash, run, clientFingerprint, deviceFingerprint, productId, deviceId, username } = exchange;
  const fingerprints = [clientFingerprint, deviceFingerprint].map((each) => Buffer.from(each, 'hex'));
  return {
    prs: lvCat(Buffer.of(1), scryptValue(exchange)),
    sid: sha256(handshakeHash, u32(run)),
    ci: lvCat('svc', ...fingerprints, productId, deviceId, username),
  };
}

/** The whole run, from both scalars (little-endian). The device is the initiator. */
export function run({ prs, sid, ci }: ReturnType<typeof inputsOf>, deviceScalar: Uint8Array, clientScalar: Uint8Array) {
  const padding = Buffer.alloc(Math.max(0, BLOCK - 1 - lvCat(prs).length - lvCat(DSI).length));
  const generator = ristretto255_hasher.deriveToCurve!(sha512(lvCat(DSI, prs, padding, ci, sid)));
  const [a, b] = [number(deviceScalar), number(clientScalar)];
  const ya = generator.multiply(a).toBytes();
  const yb = generator.multiply(b).toBytes();
  const k = Point.fromBytes(yb).multiply(a).toBytes();
  const isk = sha512(join(lvCat(`${DSI}_ISK`, sid, k), lvCat(ya, 'device'), lvCat(yb, 'client')));
  const macKey = sha512(join('CPaceMac', sid, isk));
  const tag = (share: Uint8Array, end: string): Buffer => createHmac('sha512', macKey).update(lvCat(share, end)).digest();
  return { generator: generator.toBytes(), ya, yb, k, isk, macKey, deviceTag: tag(ya, 'device'), clientTag: tag(yb, 'client') };
}

/** Each part after its length in LEB128. */
function lvCat(...parts: readonly (Uint8Array | string)[]): Buffer {
  return join(...parts.flatMap((part) => [leb128(Buffer.byteLength(part)), part]));
}

function leb128(value: number): Buffer {
  return value < 128 ? Buffer.of(value) : join(Buffer.of((value & 127) | 128), leb128(value >> 7));
}

function number(littleEndian: Uint8Array): bigint {
  return BigInt(`0x${Buffer.from(littleEndian).reverse().toString('hex')}`);
}

function sha512(bytes: Uint8Array): Buffer {
  return createHash('sha512').update(bytes).digest();
}
