/**
 * One round of the rendezvous at one end, sans-IO (PROTOCOL.md §6): which packets go to which address of the peer, what
 * comes back, and which pairs answered. The same at both ends; the agent (agent.ts) and its owner exchange the lists.
 *
 * 1. `setLocal` and `setRemote` supply the lists (lists.ts). Each candidate of the peer makes a pair (checklist.ts).
 * 2. Openers leave first (`Pair`); those with higher hop limits follow when the peer has had time for its first. When
 *    those for the peer's newest list are out, `opened` is its number, and the peer must be informed.
 * 3. Checks with full hop limit leave when the peer has opened, too, or a second later. An end whose NAT assigns ports
 *    in sequence opens only when it knows its last port, and the peer's: what it opens first gets the first of the
 *    predicted ports.
 * 4. A check of the peer is verified and answered immediately; its source is checked in return.
 * 5. An answer makes a pair valid: event `answered`. It causes no migration; the connection validates the pair as a
 *    path.
 *
 * One packet leaves per 10 ms, within the budgets of the round and of the host. Invalid datagrams are counted and have
 * no other effect.
 */
import { hex } from '@scure/base';
import type { Candidate, RendezvousState, SocketAddress } from '../control/index.ts';
import type { CryptoProvider } from '../crypto-provider.ts';
import { encodeCheck, encodeCheckAnswer, readCheckAnswer, TRANSACTION_LENGTH, transactionOfAnswer, verifyCheck } from '../stun/index.ts';
import { Checklist } from './checklist.ts';
import { Lists, type LocalView } from './lists.ts';
import { MAIN_SOCKET, OPENER_HOPS, Pair, type PairKind } from './pair.ts';
import { predictPorts } from './prediction.ts';
import type { RoundBudget, SendVerdict } from './round-budget.ts';

/**
 * ms between two packets of a round, and after the first opener of a pair: the peer expects all of these within
 * FURTHER_MARGIN, and where ports are predicted each foreign flow in between spoils the prediction.
 */
const PACE = 10;
const PACE_FIRST = 1;
/**
 * Most answered checks of the peer: those of 64 pairs and of 256 sockets are fewer. An answer goes to the source that
 * the check claims.
 */
export const MAX_ANSWERS = 1_024;
/** A datagram to send. */
export interface RoundPacket {
  readonly socket: number;
  readonly to: SocketAddress;
  readonly datagram: Uint8Array;
  /** Absent: the system's default. */
  readonly hopLimit?: number;
}

/** `answered`: the pair works in both directions. `changed`: inform the peer of `number`, the list, or `opened`. */
export type RoundEvent = { readonly kind: 'answered'; readonly pair: Pair } | { readonly kind: 'changed' };

export interface RoundOptions {
  readonly crypto: Pick<CryptoProvider, 'hmacSha256' | 'randomBytes'>;
  /** Our own tag and key, 8 and 16 bytes, fresh for the round. */
  readonly tag: Uint8Array;
  readonly key: Uint8Array;
  readonly role: 'client' | 'device';
  /** The owner of the round releases it. */
  readonly budget: RoundBudget;
  /** Round trip of the connection over which the ends exchange their lists, ms; null before the first measurement. */
  readonly rtt: number | null;
  /** Returns whether an address is in one of our networks. */
  isNear(address: string): boolean;
  /** Returns whether packets may go to a candidate of the peer: not to loopback, multicast, …, or an own address. */
  isUsable(candidate: SocketAddress): boolean;
  /**
   * Returns the address by which this host reaches another: itself, or the IPv6 address that a NAT64 translates to it
   * (RFC 6052).
   */
  reach(address: string): string;
}

export class Round {
  /** Datagrams that named our tag but were invalid or too many, and candidates that were skipped. */
  readonly stats = { invalid: 0, unusable: 0 };
  readonly lists: Lists;
  readonly checklist = new Checklist();
  readonly #options: RoundOptions;
  readonly #events: RoundEvent[] = [];
  #predicted = false;
  #answersLeft = MAX_ANSWERS;
  #nextSendAt: number;
  #over = false;

  constructor(options: RoundOptions, now: number) {
    this.#options = options;
    this.lists = new Lists(options.role, options.rtt, now);
    this.#nextSendAt = now;
  }

  /** True when every pair has failed. */
  get isExhausted(): boolean {
    const { remote, local } = this.lists;
    return remote !== null && local.isComplete && this.checklist.pairs.every(({ state }) => state === 'failed');
  }

  /** Sets what this end has learnt about itself. */
  setLocal(local: LocalView, now: number): void {
    this.lists.setLocal(local, now);
    this.#events.push({ kind: 'changed' });
  }

  /** Sets the peer's state; ignores lists older than the known one. */
  setRemote(remote: RendezvousState, now: number): void {
    for (const candidate of this.lists.setRemote(remote, now)) this.#addCandidate(candidate);
  }

  /**
   * Processes a check that names our tag, from `from` on `socket`.
   * @returns the answer, to be sent back from there; null when it is not valid
   */
  receiveCheck(datagram: Uint8Array, from: SocketAddress, socket: number, now: number): Uint8Array | null {
    const { key, crypto, budget, isUsable } = this.#options;
    if (this.#over || this.#answersLeft === 0 || !verifyCheck(datagram, key, crypto)) {
      this.stats.invalid++;
      return null;
    }
    this.#answersLeft--;
    budget.heard(from.address);
    this.checklist.hear(from, socket, isUsable, now);
    return encodeCheckAnswer(datagram, from, key, crypto);
  }

  /**
   * Processes an answer.
   * @returns our address as the peer sees it; null when it answers none of our checks, or is not valid
   */
  receiveAnswer(datagram: Uint8Array, from: SocketAddress, socket: number, now: number): SocketAddress | null {
    const id = transactionOfAnswer(datagram);
    const pair = id === null ? null : this.checklist.pairOf(id);
    const { remote } = this.lists;
    if (id === null || pair === null || remote === null || this.#over) return null;
    const mapped = readCheckAnswer(datagram, remote.key, this.#options.crypto);
    // RFC 8445 §7.2.5.2.1: an answer from another address validates no pair.
    if (mapped === null || pair.socket !== socket || !sameAddress(pair.remote, from)) {
      this.stats.invalid++;
      return null;
    }
    this.#options.budget.answered(from.address);
    if (this.checklist.answer(id, now)) this.#events.push({ kind: 'answered', pair });
    return mapped;
  }

  /** Returns the next packet, null when none may leave now. */
  transmit(now: number): RoundPacket | null {
    if (this.#over || now < this.#nextSendAt) return null;
    const packet = this.#nextPacket(now);
    this.#noteOpened();
    return packet;
  }

  nextEvent(): RoundEvent | null {
    return this.#events.shift() ?? null;
  }

  /** Returns when `transmit` may have something, ms; Infinity: not before something changes. */
  nextTimeout(): number {
    const isActive = !this.#over && this.lists.remote !== null;
    return isActive ? Math.max(this.checklist.nextTimeout(this.lists), this.#nextSendAt) : Number.POSITIVE_INFINITY;
  }

  /** Ends the round: nothing is sent or answered from now on. Wipes the keys of both ends. */
  end(): void {
    this.#over = true;
    this.checklist.end();
    this.#options.key.fill(0);
    this.lists.remote?.key.fill(0);
  }

  #nextPacket(now: number): RoundPacket | null {
    for (let due = this.#due(now); due !== null && now >= this.#nextSendAt; due = this.#due(now)) {
      const packet = due.openersLeft > 0 ? this.#open(due, now) : this.#check(due, now);
      if (packet === null) continue;
      this.#nextSendAt = now + (packet.hopLimit !== undefined && due.openers === 1 ? PACE_FIRST : PACE);
      return packet;
    }
    return null;
  }

  #due(now: number): Pair | null {
    if (this.lists.remote === null) return null;
    this.#predict(now);
    return this.checklist.due(this.lists, now);
  }

  #open(pair: Pair, now: number): RoundPacket | null {
    const verdict = this.#options.budget.takeOpener(pair.remote.address, now);
    if (verdict === 'granted') return { ...this.#packet(pair, now), hopLimit: pair.takeOpener(now) };
    if (!this.#isLate(verdict, now)) pair.skipOpeners(now);
    return null;
  }

  #check(pair: Pair, now: number): RoundPacket | null {
    if (!pair.hasChecksLeft) {
      pair.fail();
      return null;
    }
    const verdict = this.#options.budget.takeCheck(Pair.key(pair.remote, pair.socket), pair.remote.address, now);
    if (verdict === 'granted') {
      pair.takeCheck(now);
      return this.#packet(pair, now);
    }
    if (!this.#isLate(verdict, now)) pair.fail(verdict !== 'ended');
    return null;
  }

  /** Returns true when the host is at its rate limit; else the budget is used up for the pair. */
  #isLate(verdict: SendVerdict, now: number): boolean {
    if (verdict === 'rate') this.#nextSendAt = now + PACE;
    return verdict === 'rate';
  }

  #packet(pair: Pair, sentAt: number): RoundPacket {
    const { crypto } = this.#options;
    const transaction = crypto.randomBytes(TRANSACTION_LENGTH);
    const { tag, key } = this.lists.remote!;
    this.checklist.begin(hex.encode(transaction), pair, sentAt);
    return { socket: pair.socket, to: pair.remote, datagram: encodeCheck(tag, key, transaction, crypto) };
  }

  #noteOpened(): void {
    const { remote, local, opened } = this.lists;
    if (remote === null || opened === remote.number || !local.isComplete || !this.checklist.isOpened) return;
    this.lists.opened = remote.number;
    this.#events.push({ kind: 'changed' });
  }

  #addCandidate(candidate: Candidate): void {
    const { isUsable, isNear, reach } = this.#options;
    if (!isUsable(candidate)) {
      this.stats.unusable++;
      return;
    }
    const kind: PairKind = candidate.type === 'host' && isNear(candidate.address) ? 'near' : candidate.type;
    this.checklist.add(kind, { address: reach(candidate.address), port: candidate.port }, MAIN_SOCKET, OPENER_HOPS.length);
  }

  /** Adds the ports that the peer's NAT is expected to assign at its latest address, once per round. */
  #predict(now: number): void {
    const { remote, local } = this.lists;
    if (this.#predicted || remote?.nat?.mapping !== 'sequential' || !local.isComplete) return;
    this.#predicted = true;
    const [own, theirs] = [this.lists.nat(now), translated(remote.candidates).at(-1)];
    if (own === undefined || theirs === undefined) return;
    const opened = Math.max(1, translated(local.candidates).length);
    const address = this.#options.reach(theirs.address);
    for (const port of predictPorts(remote.nat, { ours: own, role: this.#options.role, opened }))
      this.checklist.add('predicted', { address, port }, MAIN_SOCKET, 1);
  }
}

/** Returns the NAT's mappings of a socket, the newest last: reports of NATs are about IPv4. */
function translated(candidates: readonly Candidate[]): readonly Candidate[] {
  return candidates.filter(({ type, address }) => type === 'reflexive' && !address.includes(':'));
}

function sameAddress(a: SocketAddress, b: SocketAddress): boolean {
  return a.port === b.port && a.address === b.address;
}
