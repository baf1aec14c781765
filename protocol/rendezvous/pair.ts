/**
 * One pair of a round (RFC 8445 §6.1.2): one of our sockets and an address where the peer may be, with the packets sent
 * there and received from there.
 *
 *   waiting ── openers out ──▶ opened ── first check ──▶ checking ── answer ──▶ answered
 *                                                            └── all checks unanswered ──▶ failed
 *
 * All our candidates share one base, the socket of the connection, so a candidate of the peer makes one pair (RFC 8445
 * §6.1.2.4). The pair says when it wants to send a packet; the round decides when one may leave.
 */
import type { SocketAddress } from '../control/index.ts';

/**
 * `peer-reflexive`: a check of the peer came from there (RFC 8445 §7.3.1.3). `predicted`: a port that its NAT is
 * expected to assign.
 */
export type PairKind = 'near' | 'host' | 'mapped' | 'reflexive' | 'peer-reflexive' | 'predicted';

export type PairState = 'waiting' | 'opened' | 'checking' | 'answered' | 'failed';

/** Socket of the connection; further ones are numbered from 1. */
export const MAIN_SOCKET = 0;

/**
 * Hop limits of the openers. The first passes a home NAT and ends at the router behind it. The further ones pass the
 * NATs of a provider, and may reach the peer's NAT where the two are neighbours, so they wait until the peer has sent
 * its own first opener (round.ts). The one opener of a predicted port has the last of these, and does not wait.
 */
export const OPENER_HOPS: readonly number[] = [2, 4, 7];
/** Minimum ms from an opener to the next one of its pair. */
const OPENER_GAP = 10;
/** ms from a check to the next one of its pair; then the wait after the last one. */
const CHECK_GAPS: readonly number[] = [50, 100, 200, 400, 800, 800, 800, 800, 800];
const LAST_WAIT = 1_000;
/** Most checks of one pair in a round. */
export const MAX_CHECKS = CHECK_GAPS.length + 1;

/** Order in which pairs are opened and checked: likely and good ones come first. */
const RANK: Readonly<Record<PairKind, number>> = { near: 0, host: 1, mapped: 2, reflexive: 3, 'peer-reflexive': 0, predicted: 5 };

export class Pair {
  readonly kind: PairKind;
  readonly remote: SocketAddress;
  readonly socket: number;
  /** Openers that are still to be sent, and those that were sent. */
  openersLeft: number;
  openers = 0;
  checks = 0;
  /** A check of the peer came from there. */
  heard = false;
  /** The budget of the round refused a packet. */
  limited = false;
  /** ms; null before the first answer. */
  rtt: number | null = null;
  #openedAt = Number.NEGATIVE_INFINITY;
  #nextCheckAt = Number.NEGATIVE_INFINITY;
  #failed = false;

  /** @param openers to send before the first check: 0 for an address that has sent a packet already */
  constructor(kind: PairKind, remote: SocketAddress, socket: number, openers: number) {
    this.kind = kind;
    this.remote = remote;
    this.socket = socket;
    this.openersLeft = openers;
  }

  /** Returns the key of a pair within a round. */
  static key({ address, port }: SocketAddress, socket: number): string {
    return `${socket} ${address} ${port}`;
  }

  get state(): PairState {
    if (this.rtt !== null) return 'answered';
    if (this.#failed) return 'failed';
    if (this.checks > 0) return 'checking';
    return this.openersLeft > 0 ? 'waiting' : 'opened';
  }

  /** True when no further result is possible. */
  get isOver(): boolean {
    return this.rtt !== null || this.#failed;
  }

  /** Lower ranks come first. IPv6 precedes IPv4 within a kind (RFC 8305 §4). */
  get rank(): number {
    return 2 * RANK[this.kind] + (this.remote.address.includes(':') ? 0 : 1);
  }

  /** Returns when it wants to send its next opener, given when further ones may follow the first. Infinity for none. */
  nextOpenerAt(furtherBegin: number): number {
    if (this.openersLeft === 0 || this.isOver) return Number.POSITIVE_INFINITY;
    const next = this.#openedAt + OPENER_GAP;
    return this.openers === 1 ? Math.max(next, furtherBegin) : next;
  }

  /**
   * Returns when it wants to send its next check, or its failure is certain, given the wait of the first one after the
   * last opener. Infinity: not before its openers are out.
   */
  nextCheckAt(wait: number): number {
    if (this.isOver || this.openersLeft > 0) return Number.POSITIVE_INFINITY;
    return this.checks === 0 && !this.heard ? Math.max(this.#nextCheckAt, this.#openedAt + wait) : this.#nextCheckAt;
  }

  /** Returns the hop limit of the opener that leaves now. */
  takeOpener(now: number): number {
    const hops = OPENER_HOPS[Math.max(0, OPENER_HOPS.length - this.openersLeft)]!;
    this.openersLeft--;
    this.openers++;
    this.#openedAt = now;
    return hops;
  }

  /** Records a check that leaves now. */
  takeCheck(now: number): void {
    this.#nextCheckAt = now + (CHECK_GAPS[this.checks] ?? LAST_WAIT);
    this.checks++;
  }

  get hasChecksLeft(): boolean {
    return this.checks < MAX_CHECKS;
  }

  /** Records a check of the peer from there: the pair is checked immediately (RFC 8445 §7.3.1.4). */
  hear(now: number): void {
    this.heard = true;
    this.openersLeft = 0;
    if (this.rtt === null && this.hasChecksLeft) {
      this.#failed = false;
      this.#nextCheckAt = now;
    }
  }

  /** Records the peer's answer to a check that left at `sentAt`. */
  answer(sentAt: number, now: number): void {
    this.rtt ??= now - sentAt;
  }

  /** Fails the pair: no further packets may go there, or none was answered. */
  fail(limited = false): void {
    this.#failed = true;
    this.limited ||= limited;
  }

  /** Stops waiting for openers that were refused or cannot be sent. */
  skipOpeners(now: number): void {
    this.openersLeft = 0;
    this.#openedAt = now;
  }
}

/** A pair as it is displayed. */
export interface PairReport {
  readonly address: string;
  readonly port: number;
  readonly kind: PairKind;
  readonly state: PairState;
  /** Checks sent; openers are not included. */
  readonly checks: number;
  /** A check of the peer came from there. */
  readonly heard: boolean;
  /** The limits on packets to addresses that have not answered were reached. */
  readonly limited: boolean;
  /** ms, null before the first answer. */
  readonly rtt: number | null;
  /** One short sentence on the outcome. */
  readonly reason: string;
}

export function reportOf({ remote, kind, state, checks, heard, limited, rtt }: Pair): PairReport {
  const { address, port } = remote;
  return { address, port, kind, state, checks, heard, limited, rtt, reason: reasonOf(state, heard, limited, checks) };
}

function countOf(checks: number): string {
  return checks === 1 ? '1 check' : `${checks} checks`;
}

function reasonOf(state: PairState, heard: boolean, limited: boolean, checks: number): string {
  if (state === 'answered') return 'it answers';
  if (heard && checks === 0) return 'the other end reaches us, not checked yet';
  if (heard) return 'the other end reaches us, our checks get no answer';
  if (limited && checks === 0) return 'not checked: no more may go to an address that has not answered';
  if (limited) return `no answer to ${countOf(checks)}, and no more may go to an address that has not answered`;
  if (state === 'failed') return `no answer to ${countOf(checks)}`;
  return state === 'checking' ? `no answer to ${countOf(checks)} so far` : 'not checked yet';
}
