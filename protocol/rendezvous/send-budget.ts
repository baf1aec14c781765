/**
 * Limits of the checks that an end may send to an address. No attacker can flood a third party by naming it as a
 * candidate, not even through many devices at once (docs/transport.md §7).
 *
 * An address is *trusted* when the station reported it for the peer, or, at a client, when a verified device named it.
 * It is *answering* once one of our checks was answered from there: only a party that received the check knows its
 * transaction id. For all others
 *
 * - a round sends at most 4 packets to an address, two of them openers: its base packets; and one more check for each
 *   of the first two valid checks from there, as the peer has the keys and can spoof their source;
 * - a host sends base packets to at most 16 addresses a minute, whatever the number of rounds, 8 of them for strangers;
 * - all rounds of strangers together send 6 packets to one address, and 6 more within half an hour: otherwise a
 *   stranger could begin round after round, each of which costs it less than the packets that it causes. Those of known
 *   peers send 12, and 12 more within a minute.
 *
 * The station may lie, or cooperate with a stranger. So all rounds of strangers together send 2,000 packets to trusted
 * addresses that have not answered, then 5 a second: enough for the attempts of one client whose NAT assigns ports in
 * sequence. Beyond that such an address counts as any other. And they may be sprayed eight times an hour. A spray for a
 * known peer is repeated at once when it was answered, else after an hour: it would find the same.
 *
 * So a stranger causes one device to send less to a victim than the stranger itself sends (for the sum see
 * test/protocol/rendezvous/send-budget.test.ts). Everything else limits the pace: 10 checks per pair, 200 packets a
 * second per host, 100 of a spray.
 *
 * Rounds of known peers and of strangers have separate slots: neither takes those of the other. A slot is freed when
 * its round is released or is 30 s old; that of the one spray after 15 s, or when a known peer needs it and a stranger
 * has it.
 *
 * There is one `HostBudget` for all connections of a host, and one `RoundBudget` (round-budget.ts) for each round. Each
 * has bounded tables; a full table refuses. Addresses are keys in canonical text. Not here: which pair is checked when,
 * and what a valid check is.
 */
import { TokenBucket } from '../token-bucket.ts';
import { type HostShare, type PeerClass, RoundBudget } from './round-budget.ts';

export type { PeerClass, RoundBudget, SendVerdict } from './round-budget.ts';

// Our constants.
/**
 * Checks and openers of a host: the burst, which lets the packets to the 32 predicted ports of a round leave together,
 * and the number a second: 200 in any second.
 */
export const BURST = 40;
export const PER_SECOND = 160;
/** Packets of a spray: a late timer may catch up with four. */
export const SPRAY_PER_SECOND = 100;
const SPRAY_BURST = 5;
/** 1,024 ports at 100 a second, and time for answers. ms */
export const SPRAY_LIFETIME = 15_000;
/** Between two sprays for the same reason, ms; a known peer's need not wait after one that was answered. */
const SPRAY_PAUSE = 3_600_000;
/** Reasons of each class within that time: a stranger has any number of keys, and each is another reason. */
export const MAX_SPRAYED: Readonly<Record<PeerClass, number>> = { known: 128, stranger: 8 };
/** Packets for strangers to trusted addresses that have not answered: burst, and number a second. */
export const TRUSTED_BURST = 2_000;
export const TRUSTED_PER_SECOND = 5;
const MINUTE = 60_000;
/**
 * Packets to an unvalidated address in all rounds of a class: the burst, and the ms in which as many become available
 * again.
 */
export const OF_ALL_ROUNDS: Readonly<Record<PeerClass, readonly [packets: number, time: number]>> = {
  known: [12, MINUTE],
  stranger: [6, 30 * MINUTE],
};
/** Unvalidated addresses remembered for that, of each class: forged checks can name any number. */
export const MAX_UNVALIDATED = 1_024;

/** Limits of a host. */
export interface HostLimits {
  /** Concurrent rounds of each class. */
  readonly rounds: Readonly<Record<PeerClass, number>>;
  /** Addresses a minute that get base packets: of all rounds, and of strangers'. */
  readonly addresses: number;
  readonly ofStrangers: number;
}

/** Limits of a device: four concurrent rounds, one of them for strangers, and 16 addresses. */
export const deviceLimits: HostLimits = { rounds: { known: 3, stranger: 1 }, addresses: 16, ofStrangers: 8 };
/** Limits of a client, which chose its devices: a round for each of its connections. */
export const clientLimits: HostLimits = { rounds: { known: 64, stranger: 0 }, addresses: 64, ofStrangers: 0 };

/** The budget of one host for all its rounds. */
export class HostBudget implements HostShare {
  readonly #limits: HostLimits;
  readonly #packets = new TokenBucket(PER_SECOND, BURST);
  readonly #trusted = new TokenBucket(TRUSTED_PER_SECOND, TRUSTED_BURST);
  readonly #rounds: Record<PeerClass, Set<RoundBudget>> = { known: new Set(), stranger: new Set() };
  /** When the last base packet went to an address, and the class of peer that caused the first. */
  readonly #recent = new Map<string, { peer: PeerClass; at: number }>();
  /** Remaining packets, by unvalidated address. */
  readonly #unvalidated: Record<PeerClass, Map<string, TokenBucket>> = { known: new Map(), stranger: new Map() };
  /** Time of the last spray, by reason. */
  readonly #sprayed: Record<PeerClass, Map<string, number>> = { known: new Map(), stranger: new Map() };
  #spray: { readonly round: RoundBudget; readonly reason: string; readonly packets: TokenBucket; readonly until: number } | null = null;

  constructor(limits: HostLimits = deviceLimits) {
    this.#limits = limits;
  }

  /** Returns a slot for a round, to be released; null while all of the class are taken. */
  acquireRound(peer: PeerClass, now: number): RoundBudget | null {
    const rounds = this.#rounds[peer];
    for (const round of rounds) if (round.hasEnded(now)) rounds.delete(round);
    if (rounds.size >= this.#limits.rounds[peer]) return null;
    const round = new RoundBudget(this, peer, now);
    rounds.add(round);
    return round;
  }

  /** Frees the slots of a round. */
  release(round: RoundBudget): void {
    this.#rounds[round.peer].delete(round);
    if (this.#spray?.round === round) this.#spray = null;
  }

  hasRate(now: number): boolean {
    return this.#packets.level(now) >= 1;
  }

  takeRate(now: number): void {
    this.#packets.take(1, now);
  }

  takeUnvalidated(address: string, peer: PeerClass, isBase: boolean, now: number): 'granted' | 'address' | 'host' | 'full' {
    this.#sweep(now);
    const recent = this.#recent.get(address);
    if (isBase && recent === undefined && !this.#mayAdd(peer)) return 'host';
    const bucket = this.#unvalidatedOf(address, peer, now);
    if (bucket === null) return 'full';
    if (!bucket.take(1, now)) return 'address';
    if (recent !== undefined) recent.at = now;
    else if (isBase) this.#recent.set(address, { peer, at: now });
    return 'granted';
  }

  answered(address: string, round: RoundBudget): void {
    const { peer } = round;
    if (peer === 'known' && this.#spray?.round === round) this.#sprayed.known.delete(this.#spray.reason);
    this.#unvalidated[peer].delete(address);
    if (this.#recent.get(address)?.peer === peer) this.#recent.delete(address);
  }

  takeTrusted(peer: PeerClass, now: number): boolean {
    return peer === 'known' || this.#trusted.take(1, now);
  }

  sprayFrom({ peer }: Pick<RoundBudget, 'peer'>, reason: string, now: number): number {
    const sprayed = this.#sprayed[peer];
    for (const [key, at] of sprayed) if (now - at >= SPRAY_PAUSE) sprayed.delete(key);
    // The first of the table is the oldest.
    const [oldest] = sprayed.size >= MAX_SPRAYED[peer] ? sprayed.values() : [];
    const again = sprayed.get(reason) ?? oldest ?? Number.NEGATIVE_INFINITY;
    const givesWay = peer === 'known' && this.#spray?.round.peer === 'stranger';
    const until = this.#spray === null || givesWay ? now : this.#spray.until;
    return Math.max(now, until, again + SPRAY_PAUSE);
  }

  acquireSpray(round: RoundBudget, reason: string, now: number): boolean {
    if (this.sprayFrom(round, reason, now) > now) return false;
    this.#sprayed[round.peer].set(reason, now);
    this.#spray = { round, reason, packets: new TokenBucket(SPRAY_PER_SECOND, SPRAY_BURST, now), until: now + SPRAY_LIFETIME };
    return true;
  }

  takeSpray(round: RoundBudget, now: number): 'granted' | 'rate' | 'ended' {
    const spray = this.#spray;
    if (spray === null || spray.round !== round || now >= spray.until) return 'ended';
    return spray.packets.take(1, now) ? 'granted' : 'rate';
  }

  cancelSpray(round: RoundBudget): void {
    if (this.#spray?.round !== round) return;
    // A stranger's reason counts nevertheless: it has any number of them.
    if (round.peer === 'known') this.#sprayed.known.delete(this.#spray.reason);
    this.#spray = null;
  }

  /** Returns whether one more address may get base packets in this minute. */
  #mayAdd(peer: PeerClass): boolean {
    const { addresses, ofStrangers } = this.#limits;
    if (this.#recent.size >= addresses) return false;
    if (peer === 'known') return true;
    let held = 0;
    for (const recent of this.#recent.values()) if (recent.peer === 'stranger') held++;
    return held < ofStrangers;
  }

  #unvalidatedOf(address: string, peer: PeerClass, now: number): TokenBucket | null {
    const all = this.#unvalidated[peer];
    let bucket = all.get(address);
    if (bucket === undefined) {
      if (all.size >= MAX_UNVALIDATED) for (const [key, other] of all) if (other.isFull(now)) all.delete(key);
      if (all.size >= MAX_UNVALIDATED) return null;
      const [packets, time] = OF_ALL_ROUNDS[peer];
      bucket = new TokenBucket(packets / (time / 1000), packets, now);
      all.set(address, bucket);
    }
    return bucket;
  }

  #sweep(now: number): void {
    for (const [address, { at }] of this.#recent) if (now - at >= MINUTE) this.#recent.delete(address);
  }
}
