/**
 * Handshake patterns as data (Noise rev. 34 §7). Version 1 of the protocol uses XX alone; the state machine interprets any
 * table of this form, which is how the published vectors of other patterns test it.
 */

/** `e`, `s`: a public key travels. Two letters: Diffie-Hellman of the initiator's first and the responder's second key. */
export type Token = 'e' | 's' | 'ee' | 'es' | 'se' | 'ss';

/** One handshake pattern. */
export interface Pattern {
  /** Name in the protocol name: `Noise_<name>_25519_ChaChaPoly_SHA256`. */
  readonly name: string;
  /** Static keys both know beforehand, initiator's and responder's pre-message. */
  readonly known: { readonly initiator: boolean; readonly responder: boolean };
  /** Messages in order; the initiator sends the first, then they alternate. */
  readonly messages: readonly (readonly Token[])[];
}

/** Both ends learn the other's static key in the handshake; both stay hidden from a passive listener. */
export const XX: Pattern = {
  name: 'XX',
  known: { initiator: false, responder: false },
  messages: [['e'], ['e', 'ee', 's', 'es'], ['s', 'se']],
};
