/** Keys, PEM and fingerprints over both crypto providers, against RFC 7748 and OpenSSL. */
import { createPrivateKey, createPublicKey } from 'node:crypto';
import { hex } from '@scure/base';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  decodePrivateKey,
  encodePrivateKey,
  equalBytes,
  fingerprint,
  fingerprintsEqual,
  isAllZero,
  isCanonicalPublicKey,
  isFingerprint,
  shortFingerprint,
  spki,
} from '../../../protocol/identity/index.ts';
import { hosts, nativeHost, nobleHost } from '../../support/crypto.ts';

fc.configureGlobal({ seed: 1 });

describe.each(hosts)('X25519 over %s', (_, host) => {
  const crypto = host(1);

  it('follows RFC 7748 §6.1', () => {
    const alice = crypto.importKey(hex.decode(ALICE));
    const bob = crypto.importKey(hex.decode(BOB));
    expect(hex.encode(alice.publicKey)).toBe('8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a');
    expect(hex.encode(bob.publicKey)).toBe('de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f');
    const shared = '4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742';
    expect(hex.encode(alice.diffieHellman(bob.publicKey))).toBe(shared);
    expect(hex.encode(bob.diffieHellman(alice.publicKey))).toBe(shared);
  });

  it('exports its private bytes for storage', () => {
    expect(hex.encode(crypto.importKey(hex.decode(ALICE)).export())).toBe(ALICE);
  });
});

describe('PEM', () => {
  it('decodes an example in the form of RFC 8410, and encodes what OpenSSL reads', () => {
    const key = nativeHost(7).generateKey();
    const pem = encodePrivateKey(key.export());
    const openssl = createPublicKey(createPrivateKey(pem)).export({ format: 'der', type: 'spki' });
    expect(new Uint8Array(openssl)).toEqual(spki(key.publicKey));
    expect(createPrivateKey(pem).export({ format: 'pem', type: 'pkcs8' })).toBe(pem);
    expect(decodePrivateKey(pem)).toEqual(key.export());
    expect(decodePrivateKey(pem.replaceAll('\n', '\r\n'))).toEqual(key.export());
  });

  it('is refused with a local error in any other form', () => {
    const ed25519 =
      '-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n-----END PRIVATE KEY-----\n';
    const good = encodePrivateKey(nativeHost(8).generateKey().export());
    const damaged = [good.replace('MC4C', 'MC4D'), good.replace('MC4C', 'MC4'), good.slice(0, 60)];
    for (const pem of ['', 'x', ed25519, ...damaged]) {
      expect(() => decodePrivateKey(pem)).toThrow(expect.objectContaining({ name: 'LocalError', code: 'INVALID_ARGUMENT' }));
    }
    expect(() => encodePrivateKey(new Uint8Array(31))).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }));
  });

  it('is decoded or refused with a local error, whatever the text', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        try {
          decodePrivateKey(`-----BEGIN PRIVATE KEY-----${text}-----END PRIVATE KEY-----`);
        } catch (error) {
          expect(error).toMatchObject({ name: 'LocalError' });
        }
      }),
    );
  });
});

describe('fingerprints', () => {
  const key = hex.decode('8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a');

  it('are the SHA-256 of the SubjectPublicKeyInfo', () => {
    expect(hex.encode(spki(key))).toBe(`302a300506032b656e032100${hex.encode(key)}`);
    const full = fingerprint(key, nativeHost(1));
    expect(full).toMatch(/^[0-9a-f]{64}$/);
    expect(fingerprint(key, nobleHost(1))).toBe(full);
    expect(shortFingerprint(full)).toBe(full.slice(0, 32));
    expect(isFingerprint(full)).toBe(true);
  });

  it('are compared only in full', () => {
    const full = fingerprint(key, nativeHost(1));
    expect(fingerprintsEqual(full, `${full}`)).toBe(true);
    expect(fingerprintsEqual(full, full.toUpperCase())).toBe(false);
    expect(fingerprintsEqual(full.slice(0, 32), full.slice(0, 32))).toBe(false);
    expect(fingerprintsEqual('', '')).toBe(false);
    expect(
      fingerprintsEqual(
        full,
        full.replace(/.$/, (digit) => (digit === '0' ? '1' : '0')),
      ),
    ).toBe(false);
  });
});

describe('public keys', () => {
  it.each([
    ['edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f', false],
    ['ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f', true],
    ['ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f', false],
    ['ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f7f', true],
    ['ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7e', true],
    ['0000000000000000000000000000000000000000000000000000000000000080', false],
    ['00', false],
  ])('%s canonical: %s', (key, canonical) => {
    expect(isCanonicalPublicKey(hex.decode(key))).toBe(canonical);
  });

  it('accept every generated key', { tags: ['slow'] }, () => {
    const crypto = nativeHost(9);
    for (let i = 0; i < 200; i++) expect(isCanonicalPublicKey(crypto.generateKey().publicKey)).toBe(true);
  });
});

describe('constant-time helpers', () => {
  it('agree with a naive comparison', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 40 }), fc.uint8Array({ maxLength: 40 }), (a, b) => {
        expect(equalBytes(a, b)).toBe(Buffer.compare(a, b) === 0);
        expect(equalBytes(a, a.slice())).toBe(true);
        expect(isAllZero(a)).toBe(a.every((byte) => byte === 0));
      }),
    );
  });
});

/** Private keys of RFC 7748 §6.1. */
const ALICE = '77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a';
const BOB = '5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb';
