/**
 * Explains why a connection is not direct, with a code and a sentence that says what would help. The explanation is
 * based on the findings of the last attempt; a guess is worded as one.
 */
import type { NatReport } from '../control/index.ts';
import type { PairReport } from './pair.ts';

export type NotDirectCode =
  | 'DISABLED'
  | 'IN_PROGRESS'
  | 'PEER_TOO_OLD'
  | 'NO_CANDIDATES'
  | 'UDP_BLOCKED'
  | 'STUN_SILENT'
  | 'BOTH_RANDOM'
  | 'NO_ANSWER'
  | 'ONE_WAY'
  | 'LARGE_DROPPED'
  | 'LIMITED';

export interface NotDirect {
  readonly code: NotDirectCode;
  readonly text: string;
}

/** The facts that an attempt has shown. */
export interface AttemptFacts {
  /** The device has answered the rendezvous. */
  readonly isAnswered: boolean;
  readonly localNat: NatReport | null;
  readonly remoteNat: NatReport | null;
  /** The station names STUN ports, but none answered. */
  readonly isStunSilent: boolean;
  readonly localCandidates: number;
  readonly remoteCandidates: number;
  readonly pairs: readonly PairReport[];
  /** A pair answered checks, but a path challenge of full size got no answer. */
  readonly isLargeDropped: boolean;
  /**
   * The sprayed stage was due, and its limit did not allow it: ms, when it will, Infinity where that is not known; null
   * else.
   */
  readonly sprayFrom: number | null;
}

const TEXTS: Readonly<Record<NotDirectCode, string>> = {
  DISABLED: 'direct paths are switched off at this end, or for this connection',
  IN_PROGRESS: 'a direct path is being searched for',
  PEER_TOO_OLD: 'the device does not answer the rendezvous: update it',
  NO_CANDIDATES: 'one end has no address that the other could try: check that it has a network besides the way to the base station',
  UDP_BLOCKED: 'one end is directly on the Internet, yet nothing gets through: a firewall blocks UDP to hosts other than the base station',
  STUN_SILENT:
    "the base station's STUN port does not answer: open its UDP port in the firewall there (by default the port of the base station + 1)",
  BOTH_RANDOM:
    'one NAT gives each flow a random port, and the other a random or sequential one: forward a port at the device and state it with --candidate, or use IPv6',
  NO_ANSWER: 'no address of the other end answers: a firewall drops what the base station does not carry, or the NATs filter too strictly',
  ONE_WAY: 'packets pass in one direction only: a firewall at one end drops what comes in, or what goes out',
  LARGE_DROPPED: 'small packets pass and those of 1,200 bytes do not: a VPN, tunnel or link on the way has too small an MTU',
  LIMITED:
    'the limit on packets to addresses that have not answered was reached: pin the device by its fingerprint, or try again in a minute',
};

/** Returns the code with its sentence. */
export function notDirect(code: NotDirectCode): NotDirect {
  return { code, text: TEXTS[code] };
}

/** For the peer's side: it has refused, or requests no rendezvous. */
export const disabledByPeer: NotDirect = { code: 'DISABLED', text: 'the other end does not look for direct paths' };

/** Detected from the channel to the base station, which uses a WebSocket. */
export const udpBlocked: NotDirect = {
  code: 'UDP_BLOCKED',
  text: 'UDP to the base station gets no answer here, so everything goes over a WebSocket: a firewall of this network blocks UDP',
};

/** Guessed from the peer's addresses: over a WebSocket the base station does not see the source of its UDP. */
export const udpBlockedThere: NotDirect = {
  code: 'UDP_BLOCKED',
  text: 'the other end names no address at which the base station sees it: UDP to the base station gets no answer there; probably a firewall of its network blocks UDP',
};

/** The limit of the sprayed stage, which lasts longer than the others. */
export const sprayLimited: NotDirect = {
  code: 'LIMITED',
  text: 'the random ports of a NAT are tried for one peer at a time, and again an hour after an attempt that found none: wait for that, or forward a port at the device and state it with --candidate',
};

/** Returns the best explanation of an attempt without a direct path. */
export function explain(facts: AttemptFacts): NotDirect {
  const code = codeOf(facts);
  if (code === 'NO_ANSWER' && facts.sprayFrom !== null) return sprayLimited;
  return code === 'NO_ANSWER' && isUnseen(facts) ? udpBlockedThere : notDirect(code);
}

/** Returns whether the peer does not know its external address, although this end knows its own. */
function isUnseen({ localNat, remoteNat, pairs }: AttemptFacts): boolean {
  if (remoteNat?.mapping !== 'unknown' || localNat === null || localNat.mapping === 'unknown' || pairs.length === 0) return false;
  return pairs.every(({ kind }) => kind === 'near' || kind === 'host');
}

function codeOf({
  isAnswered,
  isLargeDropped,
  pairs,
  localCandidates,
  remoteCandidates,
  isStunSilent,
  localNat,
  remoteNat,
}: AttemptFacts): NotDirectCode {
  if (!isAnswered) return 'PEER_TOO_OLD';
  if (isLargeDropped) return 'LARGE_DROPPED';
  if (localCandidates === 0 || remoteCandidates === 0) return 'NO_CANDIDATES';
  if (pairs.some(({ heard, state }) => heard && state !== 'answered')) return 'ONE_WAY';
  if (isHopeless(localNat, remoteNat)) return 'BOTH_RANDOM';
  if (isStunSilent) return 'STUN_SILENT';
  if (localNat?.mapping === 'none' || remoteNat?.mapping === 'none') return 'UDP_BLOCKED';
  return pairs.length > 0 && pairs.every(({ limited }) => limited) ? 'LIMITED' : 'NO_ANSWER';
}

/** Returns whether neither end's port can be guessed: a likely match takes 65,000 mappings. */
function isHopeless(local: NatReport | null, remote: NatReport | null): boolean {
  const mappings = [local?.mapping, remote?.mapping];
  return mappings.includes('random') && mappings.every((mapping) => mapping === 'random' || mapping === 'sequential');
}
