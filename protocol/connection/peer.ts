/**
 * A connection's knowledge of its peer: the key, the info in the handshake, and how the key is verified. Empty during
 * the handshake.
 */
import { packed, unpacked } from '../packed-bytes.ts';
import type { Established, Verified } from './owner.ts';

const NOTHING: Readonly<Record<string, unknown>> = Object.freeze({});

/** The part `peer` of a connection. */
export class Peer {
  #fingerprint = '';
  #handshakeHash = '';
  #info = NOTHING;
  #verified: Verified = 'none';
  #idleTimeout = 0;
  #flowParts = 0;

  /** Full fingerprint of the X25519 key that the peer proved. */
  get fingerprint(): string {
    return this.#fingerprint;
  }

  get verified(): Verified {
    return this.#verified;
  }

  /** Binds what runs over the connection, such as a password exchange, to this handshake. */
  get handshakeHash(): Uint8Array {
    return unpacked(this.#handshakeHash);
  }

  /** The responder's own description in message 2, e.g. ProductId and DeviceId. Empty on the responder's side. */
  get info(): Readonly<Record<string, unknown>> {
    return this.#info;
  }

  /**
   * ms without a packet after which the first of the two ends forgets the connection; 0: never, or during the
   * handshake.
   */
  get idleTimeout(): number {
    return this.#idleTimeout;
  }

  /** Parts of one datagram that the peer puts together (PROTOCOL.md §12); 0: whole datagrams only. */
  get flowParts(): number {
    return this.#flowParts;
  }

  /** Call when a password exchange or a pairing has shown whose key this is. */
  markVerified(how: 'pinned' | 'password'): void {
    this.#verified = how;
  }

  /** Stores what the handshake has shown. For the connection. */
  shown({ fingerprint, verified, handshakeHash, info, idleTimeout, flowParts }: Established): void {
    this.#fingerprint = fingerprint;
    this.#verified = verified;
    this.#handshakeHash = packed(handshakeHash);
    this.#info = info;
    this.#idleTimeout = idleTimeout;
    this.#flowParts = flowParts;
  }
}
