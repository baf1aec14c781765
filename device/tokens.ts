/**
 * Server connect tokens (SCT): words a client must know to be let through to this device by the base station. They keep strangers from
 * loading the device; they are not authorization.
 *
 * The device keeps the list and a version; `token-upload.ts` uploads it and notes which version the base station has. A base station takes so many
 * tokens: the first of the list, which begins with the application's and goes on with those of access control, open pairing's and then its users'
 * from the oldest. Who has one of the others reaches the device locally only.
 */
import { MAX_SCT } from '../protocol/control/index.ts';
import type { CryptoProvider } from '../protocol/crypto-provider.ts';
import { LocalError } from '../protocol/errors/index.ts';

/** Of a token we make: 62 characters, so that a byte below 248 = 4 × 62 gives each with the same probability. */
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';
const FAIR = 4 * ALPHABET.length;
const LENGTH = 12;

/** A fresh token: 12 characters of A-Z a-z 0-9, about 71 bits. */
export function createToken(crypto: CryptoProvider): string {
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
  #uploaded: number | null = 0;
  /** Tokens that the base station takes; unknown before the first attach. */
  #most = Number.POSITIVE_INFINITY;

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

  /** What the base station is to have. */
  get listed(): readonly string[] {
    return this.#all.slice(0, this.#most);
  }

  /** Tokens of the list for which the base station has no room. */
  get omitted(): readonly string[] {
    return this.#all.slice(this.#most);
  }

  /** The base station takes that many. */
  limit(most: number): void {
    const before = this.listed.length;
    this.#most = most;
    if (this.listed.length !== before) this.#version++;
  }

  get version(): number {
    return this.#version;
  }

  /** The base station has what was listed at this version; null: what it has is not known. */
  uploadedVersion(version: number | null): void {
    this.#uploaded = version;
  }

  /** The base station has what is listed now. */
  get uploaded(): boolean {
    return this.#uploaded === this.#version;
  }

  /** The base station has every token. */
  get synchronized(): boolean {
    return this.uploaded && this.omitted.length === 0;
  }

  get #all(): string[] {
    return [...new Set([...this.#tokens, ...this.#managed])];
  }

  #changed(change: () => void): boolean {
    const before = new Set(this.#all);
    change();
    const all = this.#all;
    if (all.length === before.size && all.every((token) => before.has(token))) return false;
    this.#version++;
    return true;
  }
}
