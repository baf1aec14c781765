/**
 * The lists that both ends of a round exchange, with their candidates and NATs, and which of them were opened. They
 * decide when openers and checks may begin (PROTOCOL.md §6).
 *
 * An opener with a higher hop limit that reached the NAT of an end that has not opened yet would claim the mapping
 * there, so it waits until the peer has sent its first ones. A device opens before it reports its NAT, except with
 * sequential ports: then it opens when it knows the client's NAT. A client opens at the latest when it has heard from
 * the device.
 */
import type { Candidate, NatReport, RendezvousState } from '../control/index.ts';

/** ms after an opener from which a check may follow although the peer has not opened. */
const UNOPENED_WAIT = 1_000;
/**
 * ms for which an end with sequential ports waits for both lists to be complete before it opens anyway, and for which
 * further openers wait for the peer's NAT report.
 */
const COMPLETE_WAIT = 1_000;
/**
 * ms allowed for the peer's first openers to leave. A device waits one round trip longer: MAX_RTT at most, UNKNOWN_RTT
 * where none was measured.
 */
const FURTHER_MARGIN = 20;
const MAX_RTT = 500;
const UNKNOWN_RTT = 100;

/** This end's own addresses and NAT. */
export interface LocalView {
  readonly candidates: readonly Candidate[];
  /** Absent while still unknown. */
  readonly nat?: NatReport;
  /** Nothing further will be found out: STUN has answered, or will not. */
  readonly isComplete: boolean;
}

/** When packets may begin, ms; -Infinity: now. */
export interface StartTimes {
  readonly openers: number;
  /** Openers that follow the first one of a pair. */
  readonly furtherOpeners: number;
  /** Wait of a check after the last opener of its pair. */
  readonly checkWait: number;
}

export class Lists {
  local: LocalView = { candidates: [], isComplete: false };
  /** Number of our newest list. */
  number = 0;
  remote: RendezvousState | null = null;
  /** The newest list of the peer to which openers went; 0 for none. */
  opened = 0;
  readonly #role: 'client' | 'device';
  readonly #rtt: number;
  readonly #completeBy: number;
  #localAt: number;
  /** When the peer first reported its NAT: it opens from then on. */
  #remoteCompleteAt = Number.POSITIVE_INFINITY;

  /** @param rtt round trip over which the ends exchange their lists, ms; null before the first measurement */
  constructor(role: 'client' | 'device', rtt: number | null, now: number) {
    this.#role = role;
    this.#rtt = Math.min(rtt ?? UNKNOWN_RTT, MAX_RTT);
    this.#completeBy = now + COMPLETE_WAIT;
    this.#localAt = now;
  }

  setLocal(local: LocalView, now: number): void {
    this.local = local;
    this.#localAt = now;
    this.number++;
  }

  /** Sets the peer's state; ignores lists older than the known one. @returns the candidates of a new list */
  setRemote(remote: RendezvousState, now: number): readonly Candidate[] {
    const known = this.remote;
    if (known !== null && remote.number < known.number) return [];
    if (remote.nat !== undefined) this.#remoteCompleteAt = Math.min(this.#remoteCompleteAt, now);
    this.remote = { ...remote, opened: Math.max(remote.opened, known?.opened ?? 0) };
    return known?.number === remote.number ? [] : remote.candidates;
  }

  /** Returns the report of our NAT, with its current age. */
  nat(now: number): NatReport | undefined {
    const { nat } = this.local;
    return nat?.age === undefined ? nat : { ...nat, age: Math.round(nat.age + now - this.#localAt) };
  }

  startTimes(): StartTimes {
    const { isComplete, nat } = this.local;
    // With a NAT that assigns ports in sequence the order of the openers matters.
    const isReady = isComplete && (nat?.mapping !== 'sequential' || this.remote?.nat !== undefined);
    const openers = isReady ? Number.NEGATIVE_INFINITY : this.#completeBy;
    if ((this.remote?.opened ?? 0) >= this.number) {
      return { openers, furtherOpeners: Number.NEGATIVE_INFINITY, checkWait: Number.NEGATIVE_INFINITY };
    }
    return { openers, furtherOpeners: this.#peerOpensBy() + FURTHER_MARGIN, checkWait: UNOPENED_WAIT };
  }

  #peerOpensBy(): number {
    const completeAt = Math.min(this.#remoteCompleteAt, this.#completeBy);
    if (this.#role === 'device') return completeAt + this.#rtt;
    const isLate = this.remote?.nat?.mapping === 'sequential';
    return isLate ? Math.max(completeAt, this.#localAt + this.#rtt) : completeAt;
  }
}
