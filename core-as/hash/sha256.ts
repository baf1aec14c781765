/**
 * SHA-256 (FIPS 180-4 §6.2) and HMAC with it (RFC 2104), over bytes that come in pieces.
 *
 *   sha256Start, or hmacStart with a key ── absorb, once per piece ──▶ sha256Finish, or hmacFinish
 *
 * One computation at a time. After it, only the result is left in memory. Branches and addresses depend on the length
 * of the input only, never on its content.
 */

const BLOCK_SIZE: i32 = 64;
const HASH_SIZE: i32 = 32;

/** Words of a message schedule, one for each round. */
const ROUNDS: i32 = 64;

/** FIPS 180-4 §4.2.2. */
const CONSTANTS: usize = memory.data<u32>(
  [
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be,
    0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa,
    0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
    0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3,
    0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f,
    0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
  ],
  16,
);

/** Hash value so far, eight words; after the end, bytes in network order. */
const STATE: usize = memory.data(32, 16);
/** HMAC: the hash value after the outer padded key. */
const OUTER: usize = memory.data(32, 16);
const SCHEDULE: usize = memory.data(256, 16);
/** Bytes that do not yet fill a block. */
const BLOCK: usize = memory.data(64, 16);
let waiting: i32 = 0;
/** Bytes absorbed. */
let total: u64 = 0;

/** Begins a hash. */
export function sha256Start(): void {
  store<u32>(STATE, 0x6a09e667);
  store<u32>(STATE, 0xbb67ae85, 4);
  store<u32>(STATE, 0x3c6ef372, 8);
  store<u32>(STATE, 0xa54ff53a, 12);
  store<u32>(STATE, 0x510e527f, 16);
  store<u32>(STATE, 0x9b05688c, 20);
  store<u32>(STATE, 0x1f83d9ab, 24);
  store<u32>(STATE, 0x5be0cd19, 28);
  waiting = 0;
  total = 0;
}

/** Begins an HMAC with the `length` bytes at `key`, at most 64. */
export function hmacStart(key: usize, length: i32): void {
  sha256Start();
  padKey(key, length, 0x5c);
  memory.copy(OUTER, STATE, HASH_SIZE);
  sha256Start();
  padKey(key, length, 0x36);
  total = BLOCK_SIZE;
}

/** Absorbs the next `length` bytes at `bytes`. */
export function absorb(bytes: usize, length: i32): void {
  total += length;
  const fresh = min(BLOCK_SIZE - waiting, length);
  memory.copy(BLOCK + waiting, bytes, fresh);
  waiting += fresh;
  if (waiting < BLOCK_SIZE) return;
  compress(BLOCK);
  bytes += fresh;
  length -= fresh;
  for (; length >= BLOCK_SIZE; length -= BLOCK_SIZE) {
    compress(bytes);
    bytes += BLOCK_SIZE;
  }
  memory.copy(BLOCK, bytes, length);
  waiting = length;
}

/** Ends a hash: writes its 32 bytes to `out`. */
export function sha256Finish(out: usize): void {
  finish(out);
  wipe();
}

/** Ends an HMAC: writes its 32 bytes to `out`. */
export function hmacFinish(out: usize): void {
  finish(out);
  memory.copy(STATE, OUTER, HASH_SIZE);
  memory.copy(BLOCK, out, HASH_SIZE);
  waiting = HASH_SIZE;
  total = BLOCK_SIZE + HASH_SIZE;
  finish(out);
  wipe();
}

/** One block of the key, padded with zeros, with `pad` on each of its bytes. */
function padKey(key: usize, length: i32, pad: u8): void {
  memory.copy(BLOCK, key, length);
  memory.fill(BLOCK + length, 0, BLOCK_SIZE - length);
  for (let at = 0; at < BLOCK_SIZE; at++) store<u8>(BLOCK + at, load<u8>(BLOCK + at) ^ pad);
  compress(BLOCK);
}

/** Padding (§5.1.1), the last block or two, and the hash value in network order. */
function finish(out: usize): void {
  store<u8>(BLOCK + waiting, 0x80);
  waiting++;
  if (waiting > BLOCK_SIZE - 8) {
    memory.fill(BLOCK + waiting, 0, BLOCK_SIZE - waiting);
    compress(BLOCK);
    waiting = 0;
  }
  memory.fill(BLOCK + waiting, 0, BLOCK_SIZE - 8 - waiting);
  store<u64>(BLOCK, bswap<u64>(total << 3), BLOCK_SIZE - 8);
  compress(BLOCK);
  for (let at = 0; at < HASH_SIZE; at += 4) store<u32>(out + at, bswap<u32>(load<u32>(STATE + at)));
}

function wipe(): void {
  memory.fill(STATE, 0, HASH_SIZE);
  memory.fill(OUTER, 0, HASH_SIZE);
  memory.fill(SCHEDULE, 0, 4 * ROUNDS);
  memory.fill(BLOCK, 0, BLOCK_SIZE);
}

/** Compresses one block into the hash value (§6.2.2). */
function compress(block: usize): void {
  expand(block);
  let a = load<u32>(STATE);
  let b = load<u32>(STATE, 4);
  let c = load<u32>(STATE, 8);
  let d = load<u32>(STATE, 12);
  let e = load<u32>(STATE, 16);
  let f = load<u32>(STATE, 20);
  let g = load<u32>(STATE, 24);
  let h = load<u32>(STATE, 28);
  for (let at = 0; at < 4 * ROUNDS; at += 4) {
    const sum1 = rotr<u32>(e, 6) ^ rotr<u32>(e, 11) ^ rotr<u32>(e, 25);
    const chosen = g ^ (e & (f ^ g));
    const first = h + sum1 + chosen + load<u32>(CONSTANTS + at) + load<u32>(SCHEDULE + at);
    const sum0 = rotr<u32>(a, 2) ^ rotr<u32>(a, 13) ^ rotr<u32>(a, 22);
    const majority = (a & b) | (c & (a | b));
    h = g;
    g = f;
    f = e;
    e = d + first;
    d = c;
    c = b;
    b = a;
    a = first + sum0 + majority;
  }
  store<u32>(STATE, load<u32>(STATE) + a);
  store<u32>(STATE, load<u32>(STATE, 4) + b, 4);
  store<u32>(STATE, load<u32>(STATE, 8) + c, 8);
  store<u32>(STATE, load<u32>(STATE, 12) + d, 12);
  store<u32>(STATE, load<u32>(STATE, 16) + e, 16);
  store<u32>(STATE, load<u32>(STATE, 20) + f, 20);
  store<u32>(STATE, load<u32>(STATE, 24) + g, 24);
  store<u32>(STATE, load<u32>(STATE, 28) + h, 28);
}

/** The message schedule of a block. */
function expand(block: usize): void {
  for (let at = 0; at < BLOCK_SIZE; at += 4) store<u32>(SCHEDULE + at, bswap<u32>(load<u32>(block + at)));
  for (let at = SCHEDULE + BLOCK_SIZE; at < SCHEDULE + 4 * ROUNDS; at += 4) {
    const early = load<u32>(at - 60);
    const late = load<u32>(at - 8);
    const sigma0 = rotr<u32>(early, 7) ^ rotr<u32>(early, 18) ^ (early >>> 3);
    const sigma1 = rotr<u32>(late, 17) ^ rotr<u32>(late, 19) ^ (late >>> 10);
    store<u32>(at, load<u32>(at - 64) + sigma0 + load<u32>(at - 28) + sigma1);
  }
}
