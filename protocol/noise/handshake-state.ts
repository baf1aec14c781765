/**
 * HandshakeState (Noise rev. 34 §5.3): interprets a pattern table, message by message.
 *
 * 1. The constructor mixes the prologue and the pre-messages.
 * 2. writeMessage and readMessage process the tokens of the next message in order.
 * 3. After the last message `trafficKeys` returns the keys of packet protection.
 *
 * readMessage keeps the previous state and restores it unless the whole message is valid, so a damaged, forged or
 * repeated message changes nothing (PROTOCOL.md §3). Not here: pre-shared keys, fallback, timers, repetition (a message
 * is written once; the caller repeats its bytes).
 */
import { concatBytes } from '@noble/hashes/utils.js';
import type { CryptoProvider, PrivateKey } from '../crypto-provider.ts';
import { isAllZero, isCanonicalPublicKey, KEY_LENGTH } from '../identity/index.ts';
import { orElse } from '../or-else.ts';
import type { Aead } from './cipher-state.ts';
import type { Pattern, Token } from './patterns.ts';
import { SymmetricState } from './symmetric-state.ts';

/** Bytes of a Poly1305 tag. */
const TAG_LENGTH = 16;
/**
 * Largest message that is read, in bytes: an Aead takes no more at once. Our messages are below 1,200; Noise allows
 * 65,535.
 */
const MAX_MESSAGE = 16_384;
const MASK_LABEL = new TextEncoder().encode('svc mask');

/** Pattern, role and keys of one handshake. */
export interface HandshakeOptions {
  readonly pattern: Pattern;
  readonly initiator: boolean;
  readonly prologue: Uint8Array;
  readonly crypto: CryptoProvider;
  readonly aead: Aead;
  /** Our own static key, where the pattern uses one. */
  readonly staticKey?: PrivateKey;
  /** The peer's static key, where the pattern requires it in advance. */
  readonly remoteStatic?: Uint8Array;
  /** Our own ephemeral key, for test vectors; generated otherwise. */
  readonly ephemeral?: PrivateKey;
}

/** Keys for each direction, 32 bytes each. */
export interface TrafficKeys {
  readonly send: Uint8Array;
  readonly receive: Uint8Array;
  readonly sendMask: Uint8Array;
  readonly receiveMask: Uint8Array;
}

/** One end of one handshake. */
export class HandshakeState {
  readonly #options: HandshakeOptions;
  #symmetric: SymmetricState;
  #ephemeral: PrivateKey | undefined;
  #remoteStatic: Uint8Array | undefined;
  #remoteEphemeral: Uint8Array | undefined;
  #next = 0;

  /** Initialize(). The caller must supply the keys that the pattern needs. */
  constructor(options: HandshakeOptions) {
    this.#options = options;
    this.#ephemeral = options.ephemeral;
    this.#remoteStatic = options.remoteStatic;
    this.#symmetric = SymmetricState.initialize(options.crypto, options.aead, `Noise_${options.pattern.name}_25519_ChaChaPoly_SHA256`);
    this.#symmetric.mixHash(options.prologue);
    const { known } = options.pattern;
    if (known.initiator) this.#symmetric.mixHash(this.#staticOf(options.initiator));
    if (known.responder) this.#symmetric.mixHash(this.#staticOf(!options.initiator));
  }

  /** The peer's static key: given in advance, or learnt from a valid message. */
  get remoteStatic(): Uint8Array | undefined {
    return this.#remoteStatic;
  }

  /** h. Final once all messages of the pattern were written or read. */
  get hash(): Uint8Array {
    return this.#symmetric.hash;
  }

  /** Writes the next message with `payload`. Call it once, when it is this end's turn. */
  writeMessage(payload: Uint8Array): Uint8Array {
    const parts: Uint8Array[] = [];
    for (const token of this.#tokens()) {
      if (token === 'e') parts.push(this.#writeEphemeral());
      else if (token === 's') parts.push(this.#symmetric.encryptAndHash(this.#options.staticKey!.publicKey));
      else if (!this.#mixDiffieHellman(token)) throw new TypeError(`no shared secret for ${token}`);
    }
    parts.push(this.#symmetric.encryptAndHash(payload));
    this.#next++;
    return concatBytes(...parts);
  }

  /**
   * Returns the payload of the peer's next message, or null when the message is not valid; the state is then unchanged.
   * `accept` may reject an authentic payload, by returning false or throwing, with the same effect.
   */
  readMessage(message: Uint8Array, accept: (payload: Uint8Array) => boolean = () => true): Uint8Array | null {
    if (message.length > MAX_MESSAGE) return null;
    const before = {
      symmetric: this.#symmetric,
      remoteStatic: this.#remoteStatic,
      remoteEphemeral: this.#remoteEphemeral,
      next: this.#next,
    };
    this.#symmetric = before.symmetric.clone();
    let held = false;
    try {
      const payload = this.#read(message);
      held = payload !== null && accept(payload);
      return held ? payload : null;
    } finally {
      if (!held) {
        this.#symmetric = before.symmetric;
        this.#remoteStatic = before.remoteStatic;
        this.#remoteEphemeral = before.remoteEphemeral;
        this.#next = before.next;
      }
    }
  }

  /**
   * Returns the keys of the finished handshake. With ck the final chaining key and HKDF of rev. 34 §4.3:
   *   traffic keys  k1, k2 = HKDF(ck, "", 2)          (Split() of Noise)
   *   mask keys     m1, m2 = HKDF(ck, "svc mask", 2)
   * k1 and m1 protect the initiator's packets, k2 and m2 the responder's.
   */
  trafficKeys(): TrafficKeys {
    const [k1, k2] = this.#symmetric.derive();
    const [m1, m2] = this.#symmetric.derive(MASK_LABEL);
    if (this.#options.initiator) return { send: k1, receive: k2, sendMask: m1, receiveMask: m2 };
    return { send: k2, receive: k1, sendMask: m2, receiveMask: m1 };
  }

  /** Overwrites the secrets of this handshake, but not the static key. Best effort: JavaScript may have copied them. */
  wipe(): void {
    this.#symmetric.wipe();
    this.#ephemeral?.wipe();
    this.#ephemeral = undefined;
  }

  #read(message: Uint8Array): Uint8Array | null {
    let at = 0;
    for (const token of this.#tokens()) {
      if (token === 'e') {
        if (!this.#readEphemeral(message.subarray(at, at + KEY_LENGTH))) return null;
        at += KEY_LENGTH;
      } else if (token === 's') {
        const length = KEY_LENGTH + (this.#symmetric.hasKey ? TAG_LENGTH : 0);
        if (!this.#readStatic(message.subarray(at, at + length), length)) return null;
        at += length;
      } else if (!this.#mixDiffieHellman(token)) return null;
    }
    if (this.#symmetric.hasKey && message.length - at < TAG_LENGTH) return null;
    const payload = this.#symmetric.decryptAndHash(message.subarray(at));
    if (payload !== null) this.#next++;
    return payload;
  }

  #readEphemeral(key: Uint8Array): boolean {
    if (!isCanonicalPublicKey(key)) return false;
    this.#remoteEphemeral = key.slice();
    this.#symmetric.mixHash(this.#remoteEphemeral);
    return true;
  }

  #readStatic(field: Uint8Array, length: number): boolean {
    if (field.length !== length) return false;
    const key = this.#symmetric.decryptAndHash(field);
    if (key === null || !isCanonicalPublicKey(key)) return false;
    this.#remoteStatic = key;
    return true;
  }

  #writeEphemeral(): Uint8Array {
    this.#ephemeral ??= this.#options.crypto.generateKey();
    this.#symmetric.mixHash(this.#ephemeral.publicKey);
    return this.#ephemeral.publicKey;
  }

  /**
   * Returns false when the result is all zero, or when the platform refuses to compute it for that reason (RFC 7748
   * §6.1).
   */
  #mixDiffieHellman(token: Exclude<Token, 'e' | 's'>): boolean {
    const ours = token[this.#options.initiator ? 0 : 1];
    const theirs = token[this.#options.initiator ? 1 : 0];
    const key = ours === 'e' ? this.#ephemeral! : this.#options.staticKey!;
    const remote = theirs === 'e' ? this.#remoteEphemeral! : this.#remoteStatic!;
    // The platform may throw for a low-order point.
    const shared = orElse(() => key.diffieHellman(remote), null);
    if (shared === null || isAllZero(shared)) return false;
    this.#symmetric.mixKey(shared);
    shared.fill(0);
    return true;
  }

  #tokens(): readonly Token[] {
    const tokens = this.#options.pattern.messages[this.#next];
    if (tokens === undefined) throw new TypeError('the handshake has no further message');
    return tokens;
  }

  #staticOf(ours: boolean): Uint8Array {
    return ours ? this.#options.staticKey!.publicKey : this.#remoteStatic!;
  }
}
