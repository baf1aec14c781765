/**
 * Server connect tokens (SCT): words a client must know to be let through to this device by the base station. They keep strangers from
 * loading the device; they are not authorization.
 *
 * The device keeps the list and a version; the attacher uploads the whole list and notes which version the base station has.
 */
import { MAX_SCT } from '../protocol/control/index.ts';
import type { CryptoHost } from '../protocol/crypto-host.ts';
import { LocalError } from '../protocol/errors/index.ts';

/** Of a token we make: 62 characters, so that a byte below 248 = 4 × 62 gives each with the same probability. */
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';
const FAIR = 4 * ALPHABET.length;
const LENGTH = 12;

/** A fresh token: 12 characters of A-Z a-z 0-9, about 71 bits. */
export function createToken(crypto: CryptoHost): string {
  let token = '';
  while (token.length < LENGTH) {
    for (const byte of crypto.randomBytes(LENGTH)) {
      if (byte < FAIR && token.length < LENGTH) token += ALPHABET[byte % ALPHABET.length];
    }
  }
  return token;
}

/** The application's tokens, and beside them those of access control. */
export class ServerConnectTokens {
  readonly #tokens = new Set<string>();
  #managed: ReadonlySet<string> = new Set();
  #version = 0;
  /** Version that the base station has. A list without tokens counts as known. */
  #uploaded = 0;

  /** True when the list has changed. @throws LocalError INVALID_ARGUMENT when empty or over 64 bytes */
  add(token: string): boolean {
    const length = new TextEncoder().encode(token).length;
    if (length < 1 || length > MAX_SCT) throw new LocalError('INVALID_ARGUMENT', `a server connect token has 1 to ${MAX_SCT} bytes`);
    return this.#changed(() => this.#tokens.add(token));
  }

  /** True when the list has changed: not, when access control has the token, too. @throws LocalError NOT_FOUND */
  remove(token: string): boolean {
    if (!this.#tokens.has(token)) throw new LocalError('NOT_FOUND', 'the device has no such server connect token');
    return this.#changed(() => this.#tokens.delete(token));
  }

  /** Replaces those of access control. True when the list has changed. */
  manage(tokens: readonly string[]): boolean {
    return this.#changed(() => {
      this.#managed = new Set(tokens);
    });
  }

  get all(): readonly string[] {
    return [...new Set([...this.#tokens, ...this.#managed])];
  }

  get version(): number {
    return this.#version;
  }

  /** The base station has the list of this version. */
  uploadedVersion(version: number): void {
    this.#uploaded = version;
  }

  get synchronized(): boolean {
    return this.#uploaded === this.#version;
  }

  #changed(change: () => void): boolean {
    const before = new Set(this.all);
    change();
    const { all } = this;
    if (all.length === before.size && all.every((token) => before.has(token))) return false;
    this.#version++;
    return true;
  }
}
