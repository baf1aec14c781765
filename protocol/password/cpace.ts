/**
 * CPace, initiator-responder mode with key confirmation (draft-irtf-cfrg-cpace-21, CPACE-RISTR255-SHA512): two ends that hold the same
 * password-related string show each other that they do, and nobody who listens or takes part without it learns more than that one
 * guess was wrong.
 *
 * One `CpaceParty` is one end of one run: `start` gives its share, `finish` takes the other's and gives the tags. Nothing here decides who
 * goes first, sends anything or knows what the strings mean (`exchange.ts` does).
 */
import { hmac } from '@noble/hashes/hmac.js';
import { sha512 } from '@noble/hashes/sha2.js';
import type { CpaceGroup } from './group.ts';
import { concatenate, generatorString, lvCat } from './strings.ts';

/** `H.s_in_bytes` of SHA-512. */
const BLOCK_LENGTH = 128;

const text = new TextEncoder();

/** Who goes first is the initiator. */
export type CpaceRole = 'initiator' | 'responder';

/** What both ends must have alike. */
export interface CpaceInputs {
  /** Password-related string. */
  readonly prs: Uint8Array;
  /** Channel identifier. */
  readonly ci: Uint8Array;
  /** Session id, never used twice. */
  readonly sid: Uint8Array;
}

/** Share and associated data of one end, as they go into the transcript. */
export interface CpaceMessage {
  readonly share: Uint8Array;
  readonly ad: Uint8Array;
}

/** Tags of a run: the one we send, and the one the other end must send. */
export interface CpaceTags {
  readonly own: Uint8Array;
  readonly expected: Uint8Array;
}

/** The generator of a run, §7.1. */
export function calculateGenerator(group: CpaceGroup, { prs, ci, sid }: CpaceInputs): Uint8Array {
  const string = generatorString(text.encode(group.dsi), prs, ci, sid, BLOCK_LENGTH);
  const hash = sha512(string);
  const generator = group.generator(hash);
  wipe(string, hash);
  return generator;
}

/** Intermediate session key, 64 bytes, §7.2: over the initiator's message, then the responder's. */
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

/** Key of the tags, §9.4. */
export function confirmationKey(sid: Uint8Array, intermediate: Uint8Array): Uint8Array {
  const string = concatenate(text.encode('CPaceMac'), sid, intermediate);
  const key = sha512(string);
  wipe(string);
  return key;
}

/** Tag over the message its sender sent, §9.4. */
export function confirmationTag(key: Uint8Array, message: CpaceMessage): Uint8Array {
  return hmac(sha512, key, encodeMessage(message));
}

/** One end of one run. Wiped by `finish`; by `wipe` when it does not come to that. */
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

  /** @param scalar of our share; taken over and wiped in the end */
  static start(group: CpaceGroup, role: CpaceRole, inputs: CpaceInputs, ad: Uint8Array, scalar: Uint8Array): CpaceParty {
    const generator = calculateGenerator(group, inputs);
    const share = group.scalarMult(scalar, generator);
    wipe(generator);
    return new CpaceParty(group, role, inputs.sid, ad, scalar, share);
  }

  /** The tags; null when the other share is none (no element, or the neutral one): the run is over then. */
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

function encodeMessage({ share, ad }: CpaceMessage): Uint8Array {
  return lvCat(share, ad);
}

function wipe(...secrets: readonly Uint8Array[]): void {
  for (const secret of secrets) secret.fill(0);
}
