/**
 * Server connect tokens (SCT): a client must know one for the base station to connect it to this device. They protect
 * the device from load by strangers; they are not authorization.
 *
 * The device keeps the list and its version; `token-upload.ts` uploads it and notes which version the base station has.
 * A base station accepts a limited number, from the start of the list: first the application's tokens, then those of
 * access control, open pairing's and then its users' from the oldest. Clients with any other token reach the device
 * locally only.
 */
import { check, text } from '../protocol/arguments.ts';
import { MAX_SCT } from '../protocol/control/index.ts';
import type { CryptoProvider } from '../protocol/crypto-provider.ts';
import { LocalError } from '../protocol/errors/index.ts';

/**
 * Characters of the tokens created here: 62, so that a byte below 248 = 4 × 62 gives each with the same probability.
 */
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';
const FAIR = 4 * ALPHABET.length;
const LENGTH = 12;

/** Returns a fresh token: 12 characters of A-Z a-z 0-9, about 71 bits. */
export function createToken(crypto: CryptoProvider): string {
  let token = '';
  while (token.length < LENGTH) {
    for (const byte of crypto.randomBytes(LENGTH)) {
      if (byte < FAIR && token.length < LENGTH) token += ALPHABET[byte % ALPHABET.length];
    }
  }
  return token;
}

/** The application's tokens and those of access control. */
export class ServerConnectTokens {
  readonly #tokens = new Set<string>();
  #managed: ReadonlySet<string> = new Set();
  #version = 0;
  /** Version that the base station has. A list without tokens counts as known. */
  #uploaded: number | null = 0;
  /** Number of tokens that the base station accepts; unknown before the first attach. */
  #most = Number.POSITIVE_INFINITY;

  /**
   * Adds a token; returns whether the list has changed.
   * @throws LocalError INVALID_ARGUMENT when empty or over 64 bytes
   */
  add(token: string): boolean {
    check('a server connect token', token, text);
    const length = new TextEncoder().encode(token).length;
    if (length < 1 || length > MAX_SCT) throw new LocalError('INVALID_ARGUMENT', `a server connect token has 1 to ${MAX_SCT} bytes`);
    return this.#changed(() => this.#tokens.add(token));
  }

  /**
   * Removes a token. Returns whether the list has changed: it has not if access control also has the token.
   * @throws LocalError NOT_FOUND
   */
  remove(token: string): boolean {
    check('a server connect token', token, text);
    if (!this.#tokens.has(token)) throw new LocalError('NOT_FOUND', 'the device has no such server connect token');
    return this.#changed(() => this.#tokens.delete(token));
  }

  /** Replaces those of access control. Returns whether the list has changed. */
  manage(tokens: readonly string[]): boolean {
    return this.#changed(() => {
      this.#managed = new Set(tokens);
    });
  }

  /** The tokens for the base station. */
  get listed(): readonly string[] {
    return this.#all.slice(0, this.#most);
  }

  /** Tokens beyond the base station's limit. */
  get omitted(): readonly string[] {
    return this.#all.slice(this.#most);
  }

  /** Sets the number of tokens that the base station accepts. */
  limit(most: number): void {
    const before = this.listed.length;
    this.#most = most;
    if (this.listed.length !== before) this.#version++;
  }

  get version(): number {
    return this.#version;
  }

  /** Notes that the base station has the list of this version; null: unknown. */
  uploadedVersion(version: number | null): void {
    this.#uploaded = version;
  }

  /** Whether the base station has the current list. */
  get uploaded(): boolean {
    return this.#uploaded === this.#version;
  }

  /** Whether the base station has every token. */
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
