/**
 * A second implementation of CPACE-RISTR255-SHA512 from the standards alone: ristretto255 by the formulas of RFC 9496
 * over plain integers, and Node's SHA-512. It is slow, not in constant time, and shares no code with the implementation
 * that it is compared with.
 */
import { createHash, createHmac } from 'node:crypto';

const P = 2n ** 255n - 19n;

const mod = (x: bigint): bigint => ((x % P) + P) % P;

function power(base: bigint, exponent: bigint): bigint {
  let result = 1n;
  for (let b = mod(base), e = exponent; e > 0n; e >>= 1n, b = mod(b * b)) if ((e & 1n) === 1n) result = mod(result * b);
  return result;
}

const invert = (x: bigint): bigint => power(x, P - 2n);
const isNegative = (x: bigint): boolean => (mod(x) & 1n) === 1n;
const absolute = (x: bigint): bigint => (isNegative(x) ? mod(-x) : mod(x));

const D = mod(-121665n * invert(121666n));
const SQRT_M1 = power(2n, (P - 1n) / 4n);
const SQRT_AD_MINUS_ONE = 25063068953384623474111414158702152701244531502492656460079210482610430750235n;
const INVSQRT_A_MINUS_D = 54469307008909316920995813868745141605393597292927456921205312896311721017578n;
const ONE_MINUS_D_SQ = mod(1n - D * D);
const D_MINUS_ONE_SQ = mod((D - 1n) * (D - 1n));

/** RFC 9496 §4.2. */
function sqrtRatio(u: bigint, v: bigint): [boolean, bigint] {
  let r = mod(u * v ** 3n * power(u * v ** 7n, (P - 5n) / 8n));
  const check = mod(v * r * r);
  const correct = check === mod(u);
  const flipped = check === mod(-u);
  const flippedI = check === mod(-u * SQRT_M1);
  if (flipped || flippedI) r = mod(SQRT_M1 * r);
  return [correct || flipped, absolute(r)];
}

/** Point (x/z, y/z) of the twisted Edwards curve, -x² + y² = 1 + d x² y². */
interface Point {
  readonly x: bigint;
  readonly y: bigint;
  readonly z: bigint;
}

const NEUTRAL: Point = { x: 0n, y: 1n, z: 1n };

function add(a: Point, b: Point): Point {
  const z = mod(a.z * b.z);
  const k = mod(D * mod(a.x * b.x) * mod(a.y * b.y));
  const [plus, minus] = [mod(z * z + k), mod(z * z - k)];
  return { x: mod(mod(z * (a.x * b.y + b.x * a.y)) * minus), y: mod(mod(z * (a.y * b.y + a.x * b.x)) * plus), z: mod(plus * minus) };
}

function times(scalar: bigint, point: Point): Point {
  let sum = NEUTRAL;
  for (let bit = point, rest = scalar; rest > 0n; rest >>= 1n, bit = add(bit, bit)) if ((rest & 1n) === 1n) sum = add(sum, bit);
  return sum;
}

/** RFC 9496 §4.3.1; null when decoding fails. */
function decode(bytes: Uint8Array): Point | null {
  const s = number(bytes);
  if (s >= P || isNegative(s)) return null;
  const ss = mod(s * s);
  const [u1, u2] = [mod(1n - ss), mod(1n + ss)];
  const v = mod(-D * u1 * u1 - u2 * u2);
  const [wasSquare, inverse] = sqrtRatio(1n, mod(v * u2 * u2));
  const x = absolute(2n * s * mod(inverse * u2));
  const y = mod(u1 * mod(inverse * inverse) * u2 * v);
  return !wasSquare || isNegative(x * y) || y === 0n ? null : { x, y, z: 1n };
}

/** RFC 9496 §4.3.2. */
function encode(point: Point): Uint8Array {
  const scale = invert(point.z);
  const [x0, y0] = [mod(point.x * scale), mod(point.y * scale)];
  const t0 = mod(x0 * y0);
  const u1 = mod((1n + y0) * (1n - y0));
  const [, inverse] = sqrtRatio(1n, mod(u1 * t0 * t0));
  const [d1, d2] = [mod(inverse * u1), mod(inverse * t0)];
  const z = mod(d1 * d2 * t0);
  const rotate = isNegative(t0 * z);
  const [x, y, d] = rotate ? [mod(y0 * SQRT_M1), mod(x0 * SQRT_M1), mod(d1 * INVSQRT_A_MINUS_D)] : [x0, y0, d2];
  return bytes(absolute(d * (1n - (isNegative(x * z) ? mod(-y) : y))));
}

/** RFC 9496 §4.3.4. */
function derive(uniform: Uint8Array): Point {
  return add(map(uniform.subarray(0, 32)), map(uniform.subarray(32)));
}

function map(half: Uint8Array): Point {
  const t = mod(number(half) & (2n ** 255n - 1n));
  const r = mod(SQRT_M1 * t * t);
  const u = mod((r + 1n) * ONE_MINUS_D_SQ);
  const v = mod((-1n - r * D) * (r + D));
  const [wasSquare, root] = sqrtRatio(u, v);
  const s = wasSquare ? root : mod(-absolute(root * t));
  const c = wasSquare ? -1n : r;
  const n = mod(c * (r - 1n) * D_MINUS_ONE_SQ - v);
  const [w0, w1, w2, w3] = [mod(2n * s * v), mod(n * SQRT_AD_MINUS_ONE), mod(1n - s * s), mod(1n + s * s)];
  return { x: mod(w0 * w3), y: mod(w2 * w1), z: mod(w1 * w3) };
}

function number(littleEndian: Uint8Array): bigint {
  return BigInt(`0x${Buffer.from(littleEndian).reverse().toString('hex')}`);
}

function bytes(value: bigint): Uint8Array {
  return Uint8Array.from(Buffer.from(value.toString(16).padStart(64, '0'), 'hex').reverse());
}

const sha512 = (data: Uint8Array): Uint8Array => createHash('sha512').update(data).digest();

/** Length-value form for parts shorter than 128 bytes. */
const lv = (...parts: Uint8Array[]): Uint8Array => Buffer.concat(parts.flatMap((part) => [Buffer.of(part.length), part]));

export interface ReferenceInputs {
  readonly prs: Uint8Array;
  readonly ci: Uint8Array;
  readonly sid: Uint8Array;
  readonly a: { readonly scalar: Uint8Array; readonly ad: Uint8Array };
  readonly b: { readonly scalar: Uint8Array; readonly ad: Uint8Array };
}

/** Computes a whole run from the secrets of both ends. */
export function referenceRun({ prs, ci, sid, a, b }: ReferenceInputs) {
  const dsi = Buffer.from('CPaceRistretto255');
  const padding = new Uint8Array(Math.max(0, 128 - 1 - (1 + prs.length) - (1 + dsi.length)));
  const generator = derive(sha512(lv(dsi, prs, padding, ci, sid)));
  const [ya, yb] = [encode(times(number(a.scalar), generator)), encode(times(number(b.scalar), generator))];
  const secret = encode(times(number(a.scalar), decode(yb)!));
  const [first, second] = [lv(ya, a.ad), lv(yb, b.ad)];
  const isk = sha512(Buffer.concat([lv(Buffer.from('CPaceRistretto255_ISK'), sid, secret), first, second]));
  const key = sha512(Buffer.concat([Buffer.from('CPaceMac'), sid, isk]));
  const tag = (message: Uint8Array): Uint8Array => Uint8Array.from(createHmac('sha512', key).update(message).digest());
  return { generator: encode(generator), ya, yb, secret, isk: Uint8Array.from(isk), ta: tag(first), tb: tag(second) };
}

/** Returns whether the bytes encode an element (RFC 9496 §4.3.1). */
export function isElement(candidate: Uint8Array): boolean {
  return decode(candidate) !== null;
}
