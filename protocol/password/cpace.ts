/**
 * CPace, initiator-responder mode with key confirmation (draft-irtf-cfrg-cpace-21, CPACE-RISTR255-SHA512): two ends
 * with the same password-related string prove that to each other. An attacker that listens, or takes part without the
 * string, learns only that one guess was wrong.
 *
 * One `CpaceParty` is one end of one run: `start` yields its share, `finish` takes the peer's and returns the tags.
 * This file does not decide the roles, sends nothing and does not interpret the strings (`exchange.ts` does).
 */
import { hmac } from '@noble/hashes/hmac.js';
import { sha512 } from '@noble/hashes/sha2.js';
import { concatBytes } from '@noble/hashes/utils.js';
import type { CpaceGroup } from './group.ts';
import { generatorString, lvCat } from './strings.ts';

/** `H.s_in_bytes` of SHA-512. */
const BLOCK_LENGTH = 128;

const text = new TextEncoder();

/** The initiator goes first. */
export type CpaceRole = 'initiator' | 'responder';

/** The inputs that both ends must share. */
export interface CpaceInputs {
  /** Password-related string. */
  readonly prs: Uint8Array;
  /** Channel identifier. */
  readonly ci: Uint8Array;
  /** Session id, never used twice. */
  readonly sid: Uint8Array;
}

/** Share and associated data of one end, in the form used in the transcript. */
export interface CpaceMessage {
  readonly share: Uint8Array;
  readonly ad: Uint8Array;
}

/** Tags of a run: the one to send, and the one expected from the peer. */
export interface CpaceTags {
  readonly own: Uint8Array;
  readonly expected: Uint8Array;
}

/** Returns the generator of a run, §7.1. */
export function calculateGenerator(group: CpaceGroup, { prs, ci, sid }: CpaceInputs): Uint8Array {
  const string = generatorString(text.encode(group.dsi), prs, ci, sid, BLOCK_LENGTH);
  const hash = sha512(string);
  const generator = group.generator(hash);
  wipe(string, hash);
  return generator;
}

/** Returns the intermediate session key, 64 bytes, §7.2: over the initiator's message, then the responder's. */
export function intermediateKey(
  group: CpaceGroup,
  sid: Uint8Array,
  secret: Uint8Array,
  initiator: CpaceMessage,
  responder: CpaceMessage,
): Uint8Array {
  const messages = [initiator, responder].flatMap(({ share, ad }) => [share, ad]);
  const string = lvCat(text.encode(`${group.dsi}_ISK`), sid, secret, ...messages);
  const key = sha512(string);
  wipe(string);
  return key;
}

/** Returns the key of the tags, §9.4. */
export function confirmationKey(sid: Uint8Array, intermediate: Uint8Array): Uint8Array {
  const string = concatBytes(text.encode('CPaceMac'), sid, intermediate);
  const key = sha512(string);
  wipe(string);
  return key;
}

/** Returns the tag over a message, computed by its sender, §9.4. */
export function confirmationTag(key: Uint8Array, message: CpaceMessage): Uint8Array {
  return hmac(sha512, key, lvCat(message.share, message.ad));
}

/** One end of one run. `finish` wipes it; call `wipe` if the run ends before. */
export class CpaceParty {
  readonly share: Uint8Array;
  readonly #group: CpaceGroup;
  readonly #role: CpaceRole;
  readonly #sid: Uint8Array;
  readonly #ad: Uint8Array;
  readonly #scalar: Uint8Array;

  private constructor(group: CpaceGroup, role: CpaceRole, sid: Uint8Array, ad: Uint8Array, scalar: Uint8Array, share: Uint8Array) {
    this.#group = group;
    this.#role = role;
    this.#sid = sid;
    this.#ad = ad;
    this.#scalar = scalar;
    this.share = share;
  }

  /** @param scalar of our share; the party owns it from now on and wipes it */
  static start(group: CpaceGroup, role: CpaceRole, inputs: CpaceInputs, ad: Uint8Array, scalar: Uint8Array): CpaceParty {
    const generator = calculateGenerator(group, inputs);
    const share = group.scalarMult(scalar, generator);
    wipe(generator);
    return new CpaceParty(group, role, inputs.sid, ad, scalar, share);
  }

  /**
   * Returns the tags; null when the peer's share is invalid (not an element, or the neutral one), which ends the run.
   */
  finish(their: CpaceMessage): CpaceTags | null {
    const secret = this.#group.scalarMultVfy(this.#scalar, their.share);
    this.wipe();
    if (secret === null) return null;
    const own = { share: this.share, ad: this.#ad };
    const [initiator, responder] = this.#role === 'initiator' ? [own, their] : [their, own];
    const intermediate = intermediateKey(this.#group, this.#sid, secret, initiator, responder);
    const key = confirmationKey(this.#sid, intermediate);
    const tags = { own: confirmationTag(key, own), expected: confirmationTag(key, their) };
    wipe(secret, intermediate, key);
    return tags;
  }

  wipe(): void {
    this.#scalar.fill(0);
  }
}

function wipe(...secrets: readonly Uint8Array[]): void {
  for (const secret of secrets) secret.fill(0);
}
