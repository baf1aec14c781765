/**
 * The packets that one round may send: checks and openers by address and pair. The rules and their reasons are in
 * send-budget.ts, which also counts the packets of all rounds of the host (`HostShare`).
 */

// PROTOCOL.md §6
/** Packets of a round to an address that is not trusted and has sent nothing. */
export const BASE_PACKETS = 4;
/** How many of them may be openers. */
export const BASE_OPENERS = 2;
/** Checks from an address that each allow us one check to it. */
export const HEARD_CHECKS = 2;
/** Most checks of a pair in a round. */
export const MAX_CHECKS = 10;
/** Lifetime of a round, ms. */
export const ROUND_LIFETIME = 30_000;

// Our constants: 8 candidates, 32 predicted ports, 16 addresses known only from checks, and a few more.
export const MAX_PAIRS = 64;
const MAX_ADDRESSES = 64;

/** `stranger`: neither paired nor with a password session. */
export type PeerClass = 'known' | 'stranger';

/**
 * `granted`, or the reason for a refusal: `rate` the host is at its rate limit, try again later; `pair` had its checks;
 * `address` had its packets, until a check comes from there; `host` is at its limit of addresses for this minute;
 * `ended` the round is released or too old; `full` a table is full.
 */
export type SendVerdict = 'granted' | 'rate' | 'pair' | 'address' | 'host' | 'ended' | 'full';

/** The budget that the rounds of one host share (`HostBudget`). */
export interface HostShare {
  /** Returns whether a packet may leave now; `takeRate` records that it does. */
  hasRate(now: number): boolean;
  takeRate(now: number): void;
  /** Takes one packet to an address that is neither trusted nor answering; `isBase`: no check from there allows it. */
  takeUnvalidated(address: string, peer: PeerClass, isBase: boolean, now: number): 'granted' | 'address' | 'host' | 'full';
  /** The peer is at that address: packets that went there no longer count. */
  answered(address: string, round: RoundBudget): void;
  /**
   * Takes one packet to an address that is trusted and has not answered.
   * @returns false once too many went to such addresses: it then counts as untrusted
   */
  takeTrusted(peer: PeerClass, now: number): boolean;
  /** When a spray for that reason may begin: `now`, or later. */
  sprayFrom(round: RoundBudget, reason: string, now: number): number;
  acquireSpray(round: RoundBudget, reason: string, now: number): boolean;
  takeSpray(round: RoundBudget, now: number): 'granted' | 'rate' | 'ended';
  cancelSpray(round: RoundBudget): void;
  release(round: RoundBudget): void;
}

/** The packets that a round has sent to an address, and what authorizes more. */
interface AddressState {
  trusted: boolean;
  answering: boolean;
  /** Valid checks that came from there, and how many of our checks they have allowed. */
  heard: number;
  allowed: number;
  base: number;
  openers: number;
}

/** The budget of one round, from `HostBudget.acquireRound`. */
export class RoundBudget {
  readonly peer: PeerClass;
  readonly #host: HostShare;
  readonly #until: number;
  readonly #addresses = new Map<string, AddressState>();
  /** Number of checks by pair. */
  readonly #pairs = new Map<string, number>();
  #released = false;

  /** @internal */
  constructor(host: HostShare, peer: PeerClass, now: number) {
    this.#host = host;
    this.peer = peer;
    this.#until = now + ROUND_LIFETIME;
  }

  /** Marks an address as trusted: the station reported it for the peer, or, at a client, a verified device named it. */
  trust(address: string): void {
    // The addresses of strangers leave room for these.
    const state = this.#stateOf(address, 2 * MAX_ADDRESSES);
    if (state !== null) state.trusted = true;
  }

  /**
   * Records a valid check from there: each of the first two allows us one check. Answers need no permission, as they
   * are no larger.
   */
  heard(address: string): void {
    const state = this.#stateOf(address);
    if (state !== null && state.heard < HEARD_CHECKS) state.heard++;
  }

  /** Records an answer from there to one of our checks, with its transaction id, under the key. */
  answered(address: string): void {
    const state = this.#stateOf(address);
    if (state !== null) state.answering = true;
    this.#host.answered(address, this);
  }

  /** Returns whether it is trusted or has answered. */
  isFree(address: string): boolean {
    const state = this.#addresses.get(address);
    return state !== undefined && (state.trusted || state.answering);
  }

  /** Takes an opener to that address. */
  takeOpener(address: string, now: number): SendVerdict {
    return this.#take(address, true, now);
  }

  /** Takes a check. @param pair a key of the pair, local and remote end */
  takeCheck(pair: string, address: string, now: number): SendVerdict {
    const checks = this.#pairs.get(pair) ?? 0;
    if (checks >= MAX_CHECKS) return 'pair';
    if (checks === 0 && this.#pairs.size >= MAX_PAIRS) return 'full';
    const verdict = this.#take(address, false, now);
    if (verdict === 'granted') this.#pairs.set(pair, checks + 1);
    return verdict;
  }

  /**
   * Takes the host's one spray, from this end or towards 256 of its sockets, for at most 15 s: once for each reason,
   * then hourly; at once for a known peer after one that was answered. Only towards a trusted address; the caller must
   * check that the peer named it, too.
   *
   * @param reason identifies the peer, and the network at both ends: a repeated spray would find the same
   */
  acquireSpray(address: string, reason: string, now: number): boolean {
    return !this.hasEnded(now) && this.#addresses.get(address)?.trusted === true && this.#host.acquireSpray(this, reason, now);
  }

  /**
   * Returns the earliest time, ms, at which a spray for that reason may begin, as far as is known now; Infinity towards
   * an address that is not trusted.
   */
  sprayFrom(address: string, reason: string, now: number): number {
    return this.#addresses.get(address)?.trusted === true ? this.#host.sprayFrom(this, reason, now) : Number.POSITIVE_INFINITY;
  }

  /** Takes a packet of the spray, 100 a second; in addition to the other checks. */
  takeSpray(address: string, now: number): SendVerdict {
    if (this.hasEnded(now)) return 'ended';
    return this.#addresses.get(address)?.trusted === true ? this.#host.takeSpray(this, now) : 'address';
  }

  /**
   * Returns the spray: the peer does not take part, or no socket could be opened. A known peer may try again before the
   * hour is over.
   */
  cancelSpray(): void {
    this.#host.cancelSpray(this);
  }

  /** Returns whether it was released or is older than 30 s. */
  hasEnded(now: number): boolean {
    return this.#released || now >= this.#until;
  }

  /** Frees the slots. Nothing is granted from now on. */
  release(): void {
    this.#released = true;
    this.#host.release(this);
  }

  #take(address: string, isOpener: boolean, now: number): SendVerdict {
    if (this.hasEnded(now)) return 'ended';
    const state = this.#stateOf(address);
    if (state === null) return 'full';
    if (!this.#host.hasRate(now)) return 'rate';
    const verdict = this.#verdict(address, state, isOpener, now);
    if (verdict === 'granted') this.#host.takeRate(now);
    return verdict;
  }

  #verdict(address: string, state: AddressState, isOpener: boolean, now: number): SendVerdict {
    if (state.answering) return 'granted';
    if (state.trusted && this.#host.takeTrusted(this.peer, now)) return 'granted';
    return this.#takeUnvalidated(address, state, isOpener, now);
  }

  /** Uses the permissions from received checks first, then the base packets. */
  #takeUnvalidated(address: string, state: AddressState, isOpener: boolean, now: number): SendVerdict {
    const isBase = isOpener || state.allowed >= state.heard;
    if (isBase && (state.base >= BASE_PACKETS || (isOpener && state.openers >= BASE_OPENERS))) return 'address';
    const verdict = this.#host.takeUnvalidated(address, this.peer, isBase, now);
    if (verdict !== 'granted') return verdict;
    if (isBase) state.base++;
    else state.allowed++;
    if (isOpener) state.openers++;
    return 'granted';
  }

  #stateOf(address: string, most = MAX_ADDRESSES): AddressState | null {
    let state = this.#addresses.get(address);
    if (state === undefined) {
      if (this.#addresses.size >= most) return null;
      state = { trusted: false, answering: false, heard: 0, allowed: 0, base: 0, openers: 0 };
      this.#addresses.set(address, state);
    }
    return state;
  }
}
