/**
 * One handshake that we started: the key to prove, the properties to expect, the Initiate with its repetitions, and the
 * Noise state.
 *
 * Call `nextTimeout` first: the Initiate is due immediately. After `handleTimeout`: `transmit` until null, `nextEvent`
 * until null, then `nextTimeout`; after `retry` `nextTimeout` again.
 */
import type { CryptoProvider, PrivateKey } from '../crypto-provider.ts';
import { LocalError } from '../errors/index.ts';
import { isFingerprint } from '../identity/index.ts';
import { type Aead, HandshakeState, XX } from '../noise/index.ts';
import { encodeInitiate, mac1Key, padded, SUITE, VERSION } from '../packet/index.ts';
import type { Path } from '../path.ts';
import type { PrepareOptions } from './config.ts';
import { prologue } from './negotiation.ts';

/** ms until the Initiate is first repeated on an unknown path. */
export const FIRST_TIMEOUT = 500;
/**
 * Longest pause between repeats, ms. At 20 % loss in each direction a handshake needs 1.6 attempts; without this bound
 * the default deadline of 10 s allowed five attempts, and one connect in 170 failed.
 */
const MAX_TIMEOUT = 2_000;
const NO_TOKEN = new Uint8Array(0);
const TIMED_OUT: DialEvent = Object.freeze({ kind: 'timeout' });

/** The deadline has passed without a valid answer. */
export interface DialEvent {
  readonly kind: 'timeout';
}

export class Dial {
  readonly handshake: HandshakeState;
  readonly options: PrepareOptions;
  /** Null while the base station carries the Initiate. */
  readonly path: Path | null;
  /** A Retry was honoured: once per attempt. */
  retried = false;
  readonly #crypto: CryptoProvider;
  readonly #id: Uint8Array;
  readonly #message: Uint8Array;
  readonly #firstTimeout: number;
  #packet: Uint8Array;
  #timeout: number;
  /** When the Initiate is sent or repeated. */
  #sendAt: number;
  /** The Initiate is due for sending. */
  #isDue = false;
  #event: DialEvent | null = null;
  #deadline: number;
  /** When the Initiate was sent, if it was sent only once; else -1. */
  #sentOnceAt = -1;

  /** @throws LocalError INVALID_ARGUMENT for a pin that is not a full fingerprint */
  constructor(parts: {
    crypto: CryptoProvider;
    aead: Aead;
    identity: PrivateKey;
    id: Uint8Array;
    path: Path | null;
    options: PrepareOptions;
    firstTimeout: number;
    now: number;
  }) {
    const { pin, name } = parts.options;
    if (pin !== undefined && !isFingerprint(pin))
      throw new LocalError('INVALID_ARGUMENT', 'a pin is a fingerprint of 64 lower-case hex digits');
    this.options = parts.options;
    this.path = parts.path;
    this.#crypto = parts.crypto;
    this.#id = parts.id;
    this.#firstTimeout = parts.firstTimeout;
    this.#timeout = parts.firstTimeout;
    this.#deadline = parts.options.deadline;
    this.#sendAt = parts.path === null ? Number.POSITIVE_INFINITY : parts.now;
    this.handshake = new HandshakeState({
      pattern: XX,
      initiator: true,
      prologue: prologue(VERSION, SUITE, name),
      crypto: parts.crypto,
      aead: parts.aead,
      staticKey: parts.identity,
    });
    this.#message = this.handshake.writeMessage(new Uint8Array(0));
    this.#packet = this.#encode(NO_TOKEN);
  }

  /** The Initiate in the form that the base station carries: not padded. */
  get initiate(): Uint8Array {
    return this.#packet;
  }

  /** Returns when to call `handleTimeout`, ms; Infinity for never. */
  nextTimeout(): number {
    return Math.min(this.#sendAt, this.#deadline);
  }

  /** Sends the Initiate, then repeats it after a pause that doubles up to 2 s. At the deadline the dial ends. */
  handleTimeout(now: number): void {
    if (now >= this.#deadline) {
      this.#deadline = Number.POSITIVE_INFINITY;
      this.#sendAt = Number.POSITIVE_INFINITY;
      this.#event = TIMED_OUT;
    } else if (now >= this.#sendAt) {
      this.#isDue = true;
      this.#sentOnceAt = this.#timeout === this.#firstTimeout ? now : -1;
      this.#sendAt = now + this.#timeout;
      this.#timeout = Math.min(2 * this.#timeout, MAX_TIMEOUT);
    }
  }

  /** Returns the Initiate if it is due, else null. Its bytes are the same each time. */
  transmit(): Uint8Array | null {
    if (!this.#isDue || this.path === null) return null;
    this.#isDue = false;
    return this.path.kind === 'udp' ? padded(this.#packet) : this.#packet;
  }

  /** Returns the end of the dial, once; else null. */
  nextEvent(): DialEvent | null {
    const event = this.#event;
    this.#event = null;
    return event;
  }

  /**
   * Returns the ms since the Initiate that is answered now; 0 when unknown: it was repeated, or the base station
   * carried it.
   */
  rtt(now: number): number {
    return this.#sentOnceAt < 0 ? 0 : now - this.#sentOnceAt;
  }

  /** Restarts with the token of a Retry. The Noise message stays the same: it was encrypted once. */
  retry(token: Uint8Array, now: number): void {
    this.retried = true;
    this.#packet = this.#encode(token);
    this.#timeout = this.#firstTimeout;
    this.#sendAt = now;
  }

  wipe(): void {
    this.handshake.wipe();
  }

  #encode(token: Uint8Array): Uint8Array {
    const fields = { version: VERSION, suite: SUITE, source: this.#id, token, message: this.#message };
    return encodeInitiate(this.#crypto, mac1Key(this.#crypto, this.options.name), fields);
  }
}
