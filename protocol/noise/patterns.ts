/**
 * Handshake patterns as data (Noise rev. 34 §7). Version 1 of the protocol uses XX alone. The state machine interprets
 * any table of this form, so the published vectors of other patterns test it.
 */

/**
 * `e`, `s`: a public key is sent. Two letters: Diffie-Hellman of the initiator's key (first letter) and the responder's
 * (second).
 */
export type Token = 'e' | 's' | 'ee' | 'es' | 'se' | 'ss';

/** One handshake pattern. */
export interface Pattern {
  /** Name in the protocol name: `Noise_<name>_25519_ChaChaPoly_SHA256`. */
  readonly name: string;
  /** Static keys that both ends know in advance: the initiator's and the responder's pre-message. */
  readonly known: { readonly initiator: boolean; readonly responder: boolean };
  /** Messages in order; the initiator sends the first, then they alternate. */
  readonly messages: readonly (readonly Token[])[];
}

/** Both ends learn the peer's static key in the handshake; both keys stay hidden from a passive observer. */
export const XX: Pattern = {
  name: 'XX',
  known: { initiator: false, responder: false },
  messages: [['e'], ['e', 'ee', 's', 'es'], ['s', 'se']],
};
