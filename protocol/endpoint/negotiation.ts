/**
 * Negotiation of version and suite: the offer, the choice, and the text that both ends authenticate (PROTOCOL.md §3).
 *
 * There is one of each now. The responder recomputes the choice from the offer in message 3, so that an attacker on the
 * path cannot downgrade a later version.
 */
import { SUITE, VERSION } from '../packet/index.ts';

/** Best first. */
export const VERSIONS = Uint8Array.of(VERSION);
export const SUITES = Uint8Array.of(SUITE);

const LABEL = new TextEncoder().encode('svc');

/** Returns the prologue of the Noise handshake: "svc" ‖ version ‖ suite ‖ responder name. */
export function prologue(version: number, suite: number, name: string): Uint8Array {
  const text = new TextEncoder().encode(name);
  const bytes = new Uint8Array(LABEL.length + 2 + text.length);
  bytes.set(LABEL);
  bytes[LABEL.length] = version;
  bytes[LABEL.length + 1] = suite;
  bytes.set(text, LABEL.length + 2);
  return bytes;
}

/** Returns whether we support both. */
export function supported(version: number, suite: number): boolean {
  return VERSIONS.includes(version) && SUITES.includes(suite);
}

/** Returns whether `version` and `suite` are the best of what was offered. */
export function isBest(version: number, suite: number, offered: { readonly versions: Uint8Array; readonly suites: Uint8Array }): boolean {
  return version === best(VERSIONS, offered.versions) && suite === best(SUITES, offered.suites);
}

/** Returns the first of our own that is also offered. */
function best(ours: Uint8Array, offered: Uint8Array): number | undefined {
  return ours.find((candidate) => offered.includes(candidate));
}
