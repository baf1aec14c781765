/**
 * The platform's cryptography in Node: X25519 and hashes of OpenSSL through `node:crypto`.
 *
 * Raw keys are imported as JWK (RFC 8037), which Node reads 13 times faster than DER. But a JWK of a private key also
 * contains its public key, which is not known beforehand. Node up to 24 ignores it; later versions check it and read
 * DER as fast: the format that this Node accepts is used. The key object of a private key is made once.
 */
import { createHash, createHmac, createPrivateKey, createPublicKey, diffieHellman, type KeyObject, randomBytes, scrypt } from 'node:crypto';
import type { CryptoProvider, PrivateKey } from '../../protocol/crypto-provider.ts';
import { LocalError } from '../../protocol/errors/index.ts';
import { checkPrivateKey, KEY_LENGTH } from '../../protocol/identity/index.ts';
import { orElse } from '../../protocol/or-else.ts';

/** DER of a PKCS#8 X25519 key up to its 32 raw bytes (RFC 8410 §7). */
const PKCS8_HEAD = Buffer.from('302e020100300506032b656e04220420', 'hex');

/** Remote public keys that are kept. */
const KNOWN_KEYS = 4;

const importPrivate = takesBareJwk() ? fromJwk : fromDer;

export const nodeCrypto: CryptoProvider = nativeCrypto((length) => plain(randomBytes(length)));

/** @param random cryptographically secure outside of simulations. */
export function nativeCrypto(random: (length: number) => Uint8Array): CryptoProvider {
  const publicKeyOf = publicKeyImport();
  return {
    generateKey: () => new NodeKey(random(KEY_LENGTH), publicKeyOf),
    importKey: (raw) => new NodeKey(Uint8Array.from(checkPrivateKey(raw)), publicKeyOf),
    sha256: (...parts) => digest(createHash('sha256'), parts),
    hmacSha256: (key, ...parts) => digest(createHmac('sha256', key), parts),
    randomBytes: random,
    scrypt: (password, salt, cost, length) =>
      new Promise((resolve, reject) => {
        scrypt(password, salt, length, cost, (error, value) => (error === null ? resolve(plain(value)) : reject(error)));
      }),
  };
}

/**
 * Returns a function that imports a remote public key, and keeps the last ones: importing takes as long as a shared
 * secret, a handshake uses one of its two keys twice, and the next connect uses the other one again.
 */
function publicKeyImport(): (raw: Uint8Array) => KeyObject {
  /** The newest last. */
  const known: { readonly raw: Uint8Array; readonly key: KeyObject }[] = [];
  return (raw) => {
    const at = known.findIndex((each) => Buffer.compare(each.raw, raw) === 0);
    const [entry = { raw: Uint8Array.from(raw), key: importPublic(raw) }] = at === -1 ? [] : known.splice(at, 1);
    if (known.push(entry) > KNOWN_KEYS) known.shift();
    return entry.key;
  };
}

function importPublic(raw: Uint8Array): KeyObject {
  return createPublicKey({ key: { kty: 'OKP', crv: 'X25519', x: base64url(raw) }, format: 'jwk' });
}

class NodeKey implements PrivateKey {
  readonly publicKey: Uint8Array;
  readonly #raw: Uint8Array;
  readonly #publicKeyOf: (raw: Uint8Array) => KeyObject;
  /** Undefined after `wipe`. OpenSSL overwrites its copy when the object is garbage-collected. */
  #key: KeyObject | undefined;

  constructor(raw: Uint8Array, publicKeyOf: (raw: Uint8Array) => KeyObject) {
    this.#raw = raw;
    this.#publicKeyOf = publicKeyOf;
    this.#key = importPrivate(raw);
    // Copied: a small Buffer is part of an 8 KiB one, which would stay with the key.
    this.publicKey = Uint8Array.from(Buffer.from(createPublicKey(this.#key).export({ format: 'jwk' }).x!, 'base64url'));
  }

  /** Throws on an all-zero result (RFC 7748 §6.1), as {@link PrivateKey.diffieHellman} allows. */
  diffieHellman(remotePublicKey: Uint8Array): Uint8Array {
    if (this.#key === undefined) throw new LocalError('INVALID_STATE', 'the private key was wiped');
    return plain(diffieHellman({ privateKey: this.#key, publicKey: this.#publicKeyOf(remotePublicKey) }));
  }

  export(): Uint8Array {
    return Uint8Array.from(this.#raw);
  }

  wipe(): void {
    this.#raw.fill(0);
    this.#key = undefined;
  }
}

function fromJwk(raw: Uint8Array): KeyObject {
  return createPrivateKey({ key: { kty: 'OKP', crv: 'X25519', x: '', d: base64url(raw) }, format: 'jwk' });
}

function fromDer(raw: Uint8Array): KeyObject {
  const der = Buffer.concat([PKCS8_HEAD, raw]);
  const key = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
  der.fill(0);
  return key;
}

/** Returns whether this Node accepts a private JWK without its public key. */
function takesBareJwk(): boolean {
  return orElse(() => fromJwk(new Uint8Array(KEY_LENGTH).fill(1)), null) !== null;
}

function base64url(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('base64url');
}

function digest(hash: { update(part: Uint8Array): unknown; digest(): Buffer }, parts: readonly Uint8Array[]): Uint8Array {
  for (const part of parts) hash.update(part);
  return plain(hash.digest());
}

/** Returns the same bytes as a plain `Uint8Array`: a `Buffer` has a different `slice`. */
function plain(buffer: Buffer): Uint8Array {
  return new Uint8Array(buffer.buffer, buffer.byteOffset, buffer.length);
}
