/**
 * SHA-256 and HMAC of the core, for the handshake: it computes some fifty short hashes once per connection, and most of
 * the time of the platform's own hashes would be their set-up (docs/notebook/latency.md).
 */

/** SHA-256 (FIPS 180-4) and HMAC with it (RFC 2104); both give 32 bytes and leave nothing in the core. */
export interface Hash {
  /** Hashes the parts in order. */
  sha256(...parts: readonly Uint8Array[]): Uint8Array;
  /** Computes the HMAC of the parts in order, with a key of any length. */
  hmacSha256(key: Uint8Array, ...parts: readonly Uint8Array[]): Uint8Array;
}

/** The core's exports for hashing (`core-as/hash/one-shot.ts`). */
export interface HashExports {
  hashArea(): number;
  hashAreaSize(): number;
  hashStart(): void;
  hashStartKeyed(length: number): void;
  hashUpdate(length: number): void;
  hashFinish(): void;
  hashFinishKeyed(): void;
  hashWipe(): void;
}

const HASH_LENGTH = 32;
const BLOCK_LENGTH = 64;

/** The hash of a core, over its transfer area. */
export class CoreHash implements Hash {
  private readonly core: HashExports;
  private readonly area: Uint8Array;
  private readonly result: Uint8Array;

  /** @param buffer all of the core's memory, which must never grow */
  constructor(core: HashExports, buffer: Uint8Array) {
    this.core = core;
    this.area = buffer.subarray(core.hashArea(), core.hashArea() + core.hashAreaSize());
    this.result = this.area.subarray(0, HASH_LENGTH);
  }

  sha256(...parts: readonly Uint8Array[]): Uint8Array {
    this.core.hashStart();
    this.update(parts);
    this.core.hashFinish();
    return this.take();
  }

  hmacSha256(key: Uint8Array, ...parts: readonly Uint8Array[]): Uint8Array {
    const short = key.length <= BLOCK_LENGTH ? key : this.sha256(key);
    this.area.set(short);
    this.core.hashStartKeyed(short.length);
    if (short !== key) short.fill(0);
    this.update(parts);
    this.core.hashFinishKeyed();
    return this.take();
  }

  /** Absorbs as many parts at a time as fit the area, a longer one piece by piece. */
  private update(parts: readonly Uint8Array[]): void {
    const { area, core } = this;
    let filled = 0;
    for (const part of parts) {
      for (let from = 0; from < part.length; ) {
        const length = Math.min(part.length - from, area.length - filled);
        area.set(length === part.length ? part : part.subarray(from, from + length), filled);
        from += length;
        filled += length;
        if (filled < area.length) continue;
        core.hashUpdate(filled);
        filled = 0;
      }
    }
    if (filled > 0) core.hashUpdate(filled);
  }

  private take(): Uint8Array {
    const hash = this.result.slice();
    this.core.hashWipe();
    return hash;
  }
}
