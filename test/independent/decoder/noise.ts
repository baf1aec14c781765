/**
 * Noise_XX_25519_ChaChaPoly_SHA256 (revision 34) as section 3 of PROTOCOL.md uses it. A state is a value: each step
 * gives another one, so that a message that does not hold leaves nothing behind.
 */
import { demand, hkdf, open, seal, sha256, x25519 } from './crypto.ts';

const PROTOCOL = 'Noise_XX_25519_ChaChaPoly_SHA256';
const KEY = 32;
const TAG = 16;

/** SymmetricState (§5.2): chaining key, handshake hash, and key and nonce of the cipher. */
export interface Symmetric {
  readonly ck: Uint8Array;
  readonly h: Uint8Array;
  readonly k: Uint8Array | null;
  readonly n: bigint;
}

/** A message that was read: the state after it and what was in it. */
export interface Message {
  readonly state: Symmetric;
  readonly payload: Buffer;
  readonly remoteStatic: Buffer;
}

/** Message 2, whose ephemeral key message 3 needs. */
export interface Message2 extends Message {
  readonly remoteEphemeral: Buffer;
}

/** The state before message 1. */
export function begin(version: number, suite: number, name: string): Symmetric {
  const h = Buffer.from(PROTOCOL);
  return mixHash({ ck: h, h, k: null, n: 0n }, Buffer.concat([Buffer.from('svc'), Buffer.of(version, suite), Buffer.from(name)]));
}

/** After message 1, which is `e` and an empty payload. */
export function message1(state: Symmetric, ephemeral: Uint8Array): Symmetric {
  return mixHash(mixHash(state, ephemeral), Buffer.alloc(0));
}

/** Message 2: e, ee, s, es. */
export function readMessage2(before: Symmetric, message: Uint8Array, ephemeralPrivate: Uint8Array): Message2 {
  demand(message.length >= KEY + KEY + TAG + TAG, 'message 2 is too short');
  const remoteEphemeral = Buffer.from(message.subarray(0, KEY));
  const afterE = mixHash(before, remoteEphemeral);
  const afterEe = mixKey(afterE, x25519(ephemeralPrivate, remoteEphemeral));
  const [afterS, remoteStatic] = decrypt(afterEe, message.subarray(KEY, KEY + KEY + TAG));
  const afterEs = mixKey(afterS, x25519(ephemeralPrivate, remoteStatic));
  const [state, payload] = decrypt(afterEs, message.subarray(KEY + KEY + TAG));
  return { state, payload, remoteStatic, remoteEphemeral };
}

/** Message 3: s, se. `privateOf` has the initiator's private keys, one of which the message names. */
export function readMessage3(
  before: Symmetric,
  message: Uint8Array,
  remoteEphemeral: Uint8Array,
  privateOf: (publicKey: Uint8Array) => Uint8Array,
): Message {
  demand(message.length >= KEY + TAG + TAG, 'message 3 is too short');
  const [afterS, own] = decrypt(before, message.subarray(0, KEY + TAG));
  const afterSe = mixKey(afterS, x25519(privateOf(own), remoteEphemeral));
  const [state, payload] = decrypt(afterSe, message.subarray(KEY + TAG));
  return { state, payload, remoteStatic: own };
}

export function mixHash(state: Symmetric, data: Uint8Array): Symmetric {
  return { ...state, h: sha256(state.h, data) };
}

export function mixKey(state: Symmetric, input: Uint8Array): Symmetric {
  const [ck, k] = hkdf(state.ck, input);
  return { ...state, ck, k, n: 0n };
}

/** EncryptAndHash. */
export function encrypt(state: Symmetric, text: Uint8Array): [Symmetric, Buffer] {
  const sealed = seal(state.k!, state.n, state.h, text);
  return [mixHash({ ...state, n: state.n + 1n }, sealed), sealed];
}

/** DecryptAndHash. */
function decrypt(state: Symmetric, sealed: Uint8Array): [Symmetric, Buffer] {
  const text = open(state.k!, state.n, state.h, sealed);
  return [mixHash({ ...state, n: state.n + 1n }, sealed), text];
}
