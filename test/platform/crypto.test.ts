/**
 * One suite over every implementation of `CryptoProvider`, and its hashes over that of the core, too: RFC 7748 §5.2
 * (both vectors, and the iterated one except for its million rounds) and §6.1, RFC 4231 §4.2 to §4.8, FIPS 180-2
 * appendix B.
 */
import { hexToBytes as fromHex, bytesToHex as toHex } from '@noble/hashes/utils.js';
import { describe, expect, it } from 'vitest';
import { Core, type Hash } from '../../bindings/index.ts';
import { browserCrypto } from '../../platform/browser/crypto.ts';
import { nobleCrypto } from '../../platform/noble-crypto.ts';
import { nodeCrypto } from '../../platform/node/crypto.ts';
import type { CryptoProvider } from '../../protocol/crypto-provider.ts';
import { Random } from '../../testing/random.ts';
import { hmacVectors, sha256Vectors } from '../support/hash-vectors.ts';

// RFC 7748 §6.1
const ALICE = '77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a';
const BOB = '5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb';

const seeded = new Random('crypto test');
const hosts: [string, CryptoProvider][] = [
  ['Node', nodeCrypto],
  ['browser', browserCrypto()],
  ['simulator', nobleCrypto((length) => seeded.bytes(length))],
];

/** The core hashes for a handshake. */
const hashes: [string, Hash][] = [...hosts, ['core', Core.create().hash]];

describe.each(hashes)('hashes of the %s', (_name, hash) => {
  it.each(sha256Vectors)('passes $name', ({ parts, digest }) => {
    expect(toHex(hash.sha256(...parts.map(fromHex)))).toBe(digest);
  });

  it.each(hmacVectors)('passes $name', ({ key, parts, tag }) => {
    expect(toHex(hash.hmacSha256(fromHex(key), ...parts.map(fromHex))).slice(0, tag.length)).toBe(tag);
  });
});

describe.each(hosts)('cryptography of the %s', (name, host) => {
  const dh = (scalar: string, point: string) => toHex(host.importKey(fromHex(scalar)).diffieHellman(fromHex(point)));

  it('passes the vectors of RFC 7748 §5.2', () => {
    expect(
      dh(
        'a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4',
        'e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c',
      ),
    ).toBe('c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552');
    expect(
      dh(
        '4b66e9d4d1b4673c5ad22691957d6af5c11b6421e0ea01d42ca4169e7918ba0d',
        'e5210f12786811d3f4b7959d0538ae2c31dbe7106fc03c3efc4cd549c715a493',
      ),
    ).toBe('95cbde9476e8907d7aade45cb4b873f88b595a68799fa152e6f8f7647aac7957');
  });

  /** The scalar of RFC 7748 §5.2 after `count` iterations. */
  const iterated = (count: number): string => {
    const nine = `09${'00'.repeat(31)}`;
    let [scalar, point] = [nine, nine];
    for (let i = 0; i < count; i++) [scalar, point] = [dh(scalar, point), scalar];
    return scalar;
  };

  it('passes the iterated vector of RFC 7748 §5.2 after one iteration', () => {
    expect(iterated(1)).toBe('422c8e7a6227d7bca1350b3e2bb7279f7897b87bb6854b783c60e80311ae3079');
  });

  it('passes the iterated vector of RFC 7748 §5.2 after 1,000 iterations', { tags: ['slow'] }, () => {
    expect(iterated(1000)).toBe('684cf59ba83309552800ef566f2f4d3c1c3887c49360e3875f2eb94d99532c51');
  });

  it('tells remote keys apart that come in turns', () => {
    const key = host.importKey(fromHex(ALICE));
    const other = nobleCrypto(() => fromHex(ALICE)).importKey(fromHex(ALICE));
    const remotes = Array.from({ length: 7 }, (_, index) => host.importKey(new Uint8Array(32).fill(index + 1)).publicKey);
    for (const index of [0, 1, 0, 2, 3, 4, 0, 5, 6, 6, 1, 5]) {
      // The caller's bytes may change once the call has returned.
      const remote = Uint8Array.from(remotes[index]!);
      expect(toHex(key.diffieHellman(remote))).toBe(toHex(other.diffieHellman(remotes[index]!)));
      remote.fill(9);
    }
  });

  it('passes the Diffie-Hellman of RFC 7748 §6.1', () => {
    const alice = host.importKey(fromHex(ALICE));
    const bob = host.importKey(fromHex(BOB));
    expect(toHex(alice.publicKey)).toBe('8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a');
    expect(toHex(bob.publicKey)).toBe('de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f');
    const shared = '4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742';
    expect(toHex(alice.diffieHellman(bob.publicKey))).toBe(shared);
    expect(toHex(bob.diffieHellman(alice.publicKey))).toBe(shared);
  });

  it('throws when the result is all zero (RFC 7748 §6.1)', () => {
    const key = host.generateKey();
    // Words of OpenSSL and of noble.
    const message = name === 'Node' ? 'failed during derivation' : 'invalid private or public key';
    expect(() => key.diffieHellman(new Uint8Array(32))).toThrow(message);
  });

  it('copies what it imports, exports a copy and wipes', () => {
    const raw = fromHex(BOB);
    const key = host.importKey(raw);
    raw.fill(0);
    expect(toHex(key.export())).toBe(BOB);
    key.export().fill(0);
    expect(toHex(key.export())).toBe(BOB);
    key.wipe();
    expect(toHex(key.export())).toBe('00'.repeat(32));
  });

  it.each([0, 31, 33])('refuses a private key of %d bytes', (length) => {
    expect(() => host.importKey(new Uint8Array(length))).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }));
  });

  it('creates public keys that hold no more memory than their own bytes', () => {
    expect(host.importKey(fromHex(ALICE)).publicKey.buffer.byteLength).toBe(32);
  });

  it('creates different keys and random bytes, as plain Uint8Array', () => {
    expect(toHex(host.generateKey().publicKey)).not.toBe(toHex(host.generateKey().publicKey));
    expect(toHex(host.randomBytes(32))).not.toBe(toHex(host.randomBytes(32)));
    expect(host.randomBytes(100_000)).toHaveLength(100_000);
    const arrays = [host.randomBytes(1), host.sha256(), host.hmacSha256(new Uint8Array(1)), host.generateKey().publicKey];
    for (const array of arrays) expect(Object.getPrototypeOf(array)).toBe(Uint8Array.prototype);
  });
});

describe('implementations', () => {
  it('agree on random keys', { tags: ['slow'] }, () => {
    const random = new Random('agree');
    const noble = nobleCrypto((length) => random.bytes(length));
    for (let i = 0; i < 50; i++) {
      const [raw, other] = [random.bytes(32), nodeCrypto.generateKey().publicKey];
      const [a, b] = [noble.importKey(raw), nodeCrypto.importKey(raw)];
      expect(toHex(b.publicKey)).toBe(toHex(a.publicKey));
      expect(toHex(b.diffieHellman(other))).toBe(toHex(a.diffieHellman(other)));
    }
  });

  it('agree on public keys that are not canonical numbers', () => {
    const random = new Random('agree');
    const noble = nobleCrypto((length) => random.bytes(length));
    const raw = random.bytes(32);
    const top = random.bytes(32);
    top[31]! |= 0x80;
    const large = new Uint8Array(32).fill(0xff);
    for (const point of [top, large])
      expect(toHex(nodeCrypto.importKey(raw).diffieHellman(point))).toBe(toHex(noble.importKey(raw).diffieHellman(point)));
  });
});
