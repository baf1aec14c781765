/**
 * SHA-256 and HMAC for callers outside the core, over a static transfer area.
 *
 * The caller writes a piece to the area and calls `hashUpdate`; the result is at the area's start. Each piece is wiped
 * when it is absorbed, the result when the caller calls `hashWipe`.
 */
import { absorb, hmacFinish, hmacStart, sha256Finish } from './sha256';

export { sha256Start as hashStart } from './sha256';

/** Size of the area, bytes: the messages of a handshake fit. */
const AREA_SIZE: i32 = 2048;
const HASH_SIZE: i32 = 32;

const AREA: usize = memory.data(2048, 16);

/** Address and capacity of the area. */
export function hashArea(): usize {
  return AREA;
}

export function hashAreaSize(): i32 {
  return AREA_SIZE;
}

/** Begins an HMAC whose key is the first `length` bytes of the area, at most 64. */
export function hashStartKeyed(length: i32): void {
  hmacStart(AREA, length);
  memory.fill(AREA, 0, length);
}

/** Absorbs the first `length` bytes of the area. */
export function hashUpdate(length: i32): void {
  absorb(AREA, length);
  memory.fill(AREA, 0, length);
}

/** Ends a hash begun by `hashStart`. */
export function hashFinish(): void {
  sha256Finish(AREA);
}

/** Ends an HMAC begun by `hashStartKeyed`. */
export function hashFinishKeyed(): void {
  hmacFinish(AREA);
}

/** Overwrites the result. */
export function hashWipe(): void {
  memory.fill(AREA, 0, HASH_SIZE);
}
