/** Runs in the browser: published vectors of the cipher and the hashes. All bytes are hexadecimal text. */
import { hexToBytes as fromHex, bytesToHex as toHex } from '@noble/hashes/utils.js';
import { Core } from 'svc-connect/bindings';
import { Simulation } from 'svc-connect/testing';

export interface AeadInput {
  readonly key: string;
  readonly nonce: string;
  readonly ad: string;
  readonly plaintext: string;
}

export interface AeadResult {
  readonly sealed: string;
  readonly opened: string | null;
  /** Result of opening with one bit of the tag changed. */
  readonly damaged: unknown;
}

/** Seals each vector, opens it, and opens it again with a damaged tag. */
export function sealAndOpen(vectors: readonly AeadInput[]): AeadResult[] {
  const { aead } = Core.create();
  return vectors.map(({ key, nonce, ad, plaintext }) => {
    const shared = [fromHex(key), fromHex(nonce), fromHex(ad)] as const;
    const sealed = aead.seal(...shared, fromHex(plaintext));
    const opened = aead.open(...shared, sealed);
    const damaged = sealed.with(-1, sealed.at(-1)! ^ 1);
    return { sealed: toHex(sealed), opened: opened && toHex(opened), damaged: aead.open(...shared, damaged) };
  });
}

export interface HashInput {
  /** Without a key: SHA-256; with one: HMAC-SHA-256. */
  readonly key?: string;
  readonly parts: readonly string[];
}

/** Computes each vector with the core, and with the cryptography of a simulated host, which is the one for browsers. */
export function hashes(vectors: readonly HashInput[]): string[][] {
  const hosts = [Core.create().hash, new Simulation().host('hashes').crypto];
  return vectors.map(({ key, parts }) => {
    const bytes = parts.map(fromHex);
    return hosts.map((host) => toHex(key === undefined ? host.sha256(...bytes) : host.hmacSha256(fromHex(key), ...bytes)));
  });
}
