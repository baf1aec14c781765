/**
 * Seeded randomness of the simulator: sfc32 (Chris Doty-Humphrey, PractRand), 128 bits of state. Good statistics, fast,
 * reproducible and **not secret**: the seed reveals every key made in the simulation.
 */
export class Random {
  readonly #seed: string;
  #a = 0;
  #b = 0;
  #c = 0;
  #counter = 1;

  /** The same text gives the same sequence. */
  constructor(seed: string) {
    this.#seed = seed;
    [this.#a, this.#b, this.#c] = [hash(seed, 0x811c9dc5), hash(seed, 0x9e3779b9), hash(seed, 0x85ebca6b)];
    for (let i = 0; i < 12; i++) this.u32();
  }

  /** Returns an independent sequence: draws of one part do not affect another's. */
  fork(name: string): Random {
    return new Random(`${this.#seed}/${name}`);
  }

  u32(): number {
    const result = (((this.#a + this.#b) | 0) + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + result) | 0;
    return result >>> 0;
  }

  /** Returns a number from 0 up to but not including 1. */
  fraction(): number {
    return this.u32() / 0x1_0000_0000;
  }

  bytes(length: number): Uint8Array {
    const bytes = new Uint8Array(length);
    for (let i = 0; i < length; i++) bytes[i] = this.u32() >>> 24;
    return bytes;
  }
}

/** FNV-1a over the UTF-16 units, with a final mix so that similar seeds differ in all bits. */
function hash(text: string, basis: number): number {
  let value = basis;
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193);
  value = Math.imul(value ^ (value >>> 16), 0x7feb352d);
  value = Math.imul(value ^ (value >>> 15), 0x846ca68b);
  return value ^ (value >>> 16);
}
