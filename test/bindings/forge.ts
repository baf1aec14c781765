/**
 * Data packets made by hand with the keys of a Pair and noble's cipher: packets that an authenticated but misbehaving
 * peer could send.
 */
import { chacha20, chacha20poly1305 } from '@noble/ciphers/chacha.js';

export interface Forgery {
  number: number;
  frames: Uint8Array | number[];
  /** Key phase bit. */
  phase?: boolean;
  /** Sender: 'initiator' (default) or 'responder'. */
  from?: 'initiator' | 'responder';
  key?: Uint8Array;
}

/** A whole Data packet. */
export function forge({ number, frames, phase = false, from = 'initiator', key }: Forgery): Uint8Array {
  const fromInitiator = from === 'initiator';
  const id = new Uint8Array(8).fill(fromInitiator ? 2 : 1);
  const header = new Uint8Array(13);
  header[0] = phase ? 0xe0 : 0xc0;
  header.set(id, 1);
  const mask = maskOf(new Uint8Array(32).fill(fromInitiator ? 3 : 4), id);
  new DataView(header.buffer).setUint32(9, (number + mask) >>> 0);
  const sealed = chacha20poly1305(key ?? new Uint8Array(32).fill(fromInitiator ? 1 : 2), nonceOf(BigInt(number)), header).encrypt(
    Uint8Array.from(frames),
  );
  const packet = new Uint8Array(header.length + sealed.length);
  packet.set(header);
  packet.set(sealed, header.length);
  return packet;
}

/** Frames of a Data packet with a number below 2^32, in the first key phase; null when it does not open. */
export function reveal(packet: Uint8Array, from: 'initiator' | 'responder'): Uint8Array | null {
  const side = from === 'initiator' ? 1 : 2;
  const header = packet.slice(0, 13);
  const mask = maskOf(new Uint8Array(32).fill(side + 2), header.slice(1, 9));
  const number = (new DataView(header.buffer).getUint32(9) - mask) >>> 0;
  try {
    return chacha20poly1305(new Uint8Array(32).fill(side), nonceOf(BigInt(number)), header).decrypt(packet.slice(13));
  } catch {
    return null;
  }
}

/** Mask of an id (PROTOCOL.md §4). */
export function maskOf(maskKey: Uint8Array, id: Uint8Array): number {
  const nonce = new Uint8Array(12);
  nonce.set(id, 4);
  return new DataView(chacha20(maskKey, nonce, new Uint8Array(64)).buffer).getUint32(0);
}

/** Noise REKEY. */
export function rekey(key: Uint8Array): Uint8Array {
  return chacha20poly1305(key, nonceOf(0xffff_ffff_ffff_ffffn)).encrypt(new Uint8Array(32)).subarray(0, 32);
}

/** A variable-length integer in 8 bytes, or in the shortest form. */
export function varint(value: number): number[] {
  if (value < 0x40) return [value];
  if (value < 0x4000) return [0x40 | (value >> 8), value & 255];
  if (value < 0x4000_0000) return [0x80 | (value >> 24), (value >> 16) & 255, (value >> 8) & 255, value & 255];
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(value) | 0xc000_0000_0000_0000n);
  return [...bytes];
}

function nonceOf(number: bigint): Uint8Array {
  const nonce = new Uint8Array(12);
  new DataView(nonce.buffer).setBigUint64(4, number, true);
  return nonce;
}
