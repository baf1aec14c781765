/**
 * One round of the rendezvous at one end, sans-IO (PROTOCOL.md §6): which packets go to which address of the peer, what
 * comes back, and which pairs answered. The same at both ends; the agent (agent.ts) and its owner exchange the lists.
 *
 * 1. `setLocal` and `setRemote` supply the lists. Each candidate of the peer makes a pair.
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
import type { Candidate, NatReport, RendezvousState, SocketAddress } from '../control/index.ts';
import type { CryptoProvider } from '../crypto-provider.ts';
import { encodeCheck, encodeCheckAnswer, readCheckAnswer, TRANSACTION_LENGTH, transactionOfAnswer, verifyCheck } from '../stun/index.ts';
import { MAIN_SOCKET, MAX_CHECKS, OPENER_HOPS, Pair, type PairKind } from './pair.ts';
import { predictPorts } from './prediction.ts';
import type { RoundBudget, SendVerdict } from './round-budget.ts';

/**
 * ms between two packets of a round, and after the first opener of a pair: the peer expects all of these within
 * FURTHER_MARGIN, and where ports are predicted each foreign flow in between spoils the prediction.
 */
const PACE = 10;
const PACE_FIRST = 1;
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
/** Most pairs in all, and those created only by the peer's checks: by filling them a peer only spoils its own round. */
const MAX_PAIRS = 64;
const MAX_PEER_REFLEXIVE = 16;
/** Most transactions whose answers still count. */
const MAX_TRANSACTIONS = 512;
/**
 * Most answered checks of the peer: those of 64 pairs and of 256 sockets are fewer. An answer goes to the source that
 * the check claims.
 */
const MAX_ANSWERS = 1_024;
/** The pairs that a NAT with sequential ports opens first. */
const SEQUENCED: ReadonlySet<PairKind> = new Set<PairKind>(['predicted', 'reflexive']);

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

/** This end's own addresses and NAT. */
export interface LocalView {
  readonly candidates: readonly Candidate[];
  /** Absent while still unknown. */
  readonly nat?: NatReport;
  /** Nothing further will be found out: STUN has answered, or will not. */
  readonly isComplete: boolean;
}

interface Transaction {
  readonly pair: Pair;
  readonly sentAt: number;
}

export class Round {
  /** Datagrams that named our tag but were invalid or too many, and candidates that were skipped. */
  readonly stats = { invalid: 0, unusable: 0 };
  readonly #options: RoundOptions;
  readonly #startedAt: number;
  readonly #pairs = new Map<string, Pair>();
  readonly #transactions = new Map<string, Transaction>();
  readonly #events: RoundEvent[] = [];
  #local: LocalView = { candidates: [], isComplete: false };
  #number = 0;
  #natAt: number;
  #remote: RendezvousState | null = null;
  /** When the peer first reported its NAT: it opens from then on. */
  #remoteCompleteAt = Number.POSITIVE_INFINITY;
  #opened = 0;
  #predicted = false;
  #peerReflexive = 0;
  #answersLeft = MAX_ANSWERS;
  #nextSendAt: number;
  #hasAnswer = false;
  #over = false;

  constructor(options: RoundOptions, now: number) {
    this.#options = options;
    this.#startedAt = now;
    this.#nextSendAt = now;
    this.#natAt = now;
  }

  /** Number of our newest list. */
  get number(): number {
    return this.#number;
  }

  /** The newest list of the peer to which openers went; 0 for none. */
  get opened(): number {
    return this.#opened;
  }

  get candidates(): readonly Candidate[] {
    return this.#local.candidates;
  }

  get remote(): RendezvousState | null {
    return this.#remote;
  }

  get pairs(): readonly Pair[] {
    return [...this.#pairs.values()];
  }

  /** Returns the report of our NAT, with its current age. */
  nat(now: number): NatReport | undefined {
    const { nat } = this.#local;
    return nat?.age === undefined ? nat : { ...nat, age: Math.round(nat.age + now - this.#natAt) };
  }

  /** True when every pair has failed. */
  get isExhausted(): boolean {
    return this.#remote !== null && this.#local.isComplete && this.pairs.every(({ state }) => state === 'failed');
  }

  /** True when a pair works in both directions. */
  get hasAnswer(): boolean {
    return this.#hasAnswer;
  }

  /** Sets what this end has learnt about itself. */
  setLocal(local: LocalView, now: number): void {
    this.#local = local;
    this.#natAt = now;
    this.#number++;
    this.#events.push({ kind: 'changed' });
  }

  /** Sets the peer's state; ignores lists older than the known one. */
  setRemote(remote: RendezvousState, now: number): void {
    const known = this.#remote;
    if (known !== null && remote.number < known.number) return;
    if (remote.nat !== undefined) this.#remoteCompleteAt = Math.min(this.#remoteCompleteAt, now);
    this.#remote = { ...remote, opened: Math.max(remote.opened, known?.opened ?? 0) };
    if (known?.number === remote.number) return;
    for (const candidate of remote.candidates) this.#addCandidate(candidate);
  }

  /**
   * Processes a check that names our tag, from `from` on `socket`.
   * @returns the answer, to be sent back from there; null when it is not valid
   */
  receiveCheck(datagram: Uint8Array, from: SocketAddress, socket: number, now: number): Uint8Array | null {
    const { key, crypto } = this.#options;
    if (this.#over || this.#answersLeft === 0 || !verifyCheck(datagram, key, crypto)) {
      this.stats.invalid++;
      return null;
    }
    this.#answersLeft--;
    this.#options.budget.heard(from.address);
    this.#hear(from, socket, now);
    return encodeCheckAnswer(datagram, from, key, crypto);
  }

  /**
   * Processes an answer.
   * @returns our address as the peer sees it; null when it answers none of our checks, or is not valid
   */
  receiveAnswer(datagram: Uint8Array, from: SocketAddress, socket: number, now: number): SocketAddress | null {
    const id = transactionOfAnswer(datagram);
    const transaction = id === null ? undefined : this.#transactions.get(id);
    if (id === null || transaction === undefined || this.#remote === null || this.#over) return null;
    const { pair, sentAt } = transaction;
    const mapped = readCheckAnswer(datagram, this.#remote.key, this.#options.crypto);
    // RFC 8445 §7.2.5.2.1: an answer from another address validates no pair.
    if (mapped === null || pair.socket !== socket || !sameAddress(pair.remote, from)) {
      this.stats.invalid++;
      return null;
    }
    this.#transactions.delete(id);
    this.#options.budget.answered(from.address);
    if (pair.rtt === null) {
      pair.answer(sentAt, now);
      this.#hasAnswer = true;
      this.#events.push({ kind: 'answered', pair });
    }
    return mapped;
  }

  /** Adds a pair that was found by other means, such as spraying: it is checked immediately. */
  addPair(remote: SocketAddress, socket: number, now: number): Pair | null {
    const pair = this.#add('peer-reflexive', remote, socket, 0);
    pair?.hear(now);
    return pair;
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
    if (this.#over || this.#remote === null) return Number.POSITIVE_INFINITY;
    let next = Number.POSITIVE_INFINITY;
    for (const pair of this.#pairs.values()) next = Math.min(next, this.#wantedAt(pair));
    return Math.max(next, this.#nextSendAt);
  }

  /** Ends the round: nothing is sent or answered from now on. Wipes the keys of both ends. */
  end(): void {
    this.#over = true;
    this.#transactions.clear();
    this.#options.key.fill(0);
    this.#remote?.key.fill(0);
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
    if (this.#remote === null) return null;
    this.#predict(now);
    let first: Pair | null = null;
    for (const pair of this.#pairs.values()) {
      if (this.#wantedAt(pair) > now) continue;
      if (first === null || this.#order(pair) < this.#order(first)) first = pair;
    }
    return first;
  }

  /**
   * Openers go before checks, and pairs with fewer of them before those with more. If our NAT assigns ports in
   * sequence, the pairs from which the peer's predictions count are opened first.
   */
  #order(pair: Pair): number {
    if (pair.openersLeft === 0) return 1_000 + 100 * Math.min(pair.checks, MAX_CHECKS) + pair.rank;
    const inSequence = this.#local.nat?.mapping === 'sequential';
    return 100 * pair.openers + pair.rank - (inSequence && SEQUENCED.has(pair.kind) ? 1_000 : 0);
  }

  #wantedAt(pair: Pair): number {
    if (pair.openersLeft > 0) return Math.max(pair.nextOpenerAt(this.#furtherBegin), this.#opensAt());
    return pair.nextCheckAt(this.#checksBegin);
  }

  get #hasPeerOpened(): boolean {
    return (this.#remote?.opened ?? 0) >= this.#number;
  }

  /**
   * Returns when further openers may follow the first of a pair: one that reached the NAT of an end that has not opened
   * yet would claim the mapping there. A device opens before it reports its NAT, except with sequential ports: then it
   * opens when it knows the client's NAT. A client opens at the latest when it has heard from the device.
   */
  readonly #furtherBegin = (): number => {
    if (this.#hasPeerOpened) return Number.NEGATIVE_INFINITY;
    const completeAt = Math.min(this.#remoteCompleteAt, this.#startedAt + COMPLETE_WAIT);
    const rtt = Math.min(this.#options.rtt ?? UNKNOWN_RTT, MAX_RTT);
    if (this.#options.role === 'device') return completeAt + rtt + FURTHER_MARGIN;
    const isLate = this.#remote?.nat?.mapping === 'sequential';
    return FURTHER_MARGIN + (isLate ? Math.max(completeAt, this.#natAt + rtt) : completeAt);
  };

  /** Returns when openers may begin: with a NAT that assigns ports in sequence their order matters. */
  #opensAt(): number {
    const { isComplete, nat } = this.#local;
    const isReady = isComplete && (nat?.mapping !== 'sequential' || this.#remote?.nat !== undefined);
    return isReady ? Number.NEGATIVE_INFINITY : this.#startedAt + COMPLETE_WAIT;
  }

  readonly #checksBegin = (openedAt: number): number => (this.#hasPeerOpened ? Number.NEGATIVE_INFINITY : openedAt + UNOPENED_WAIT);

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
    const { tag, key } = this.#remote!;
    if (this.#transactions.size >= MAX_TRANSACTIONS) this.#transactions.delete(this.#transactions.keys().next().value!);
    this.#transactions.set(hex.encode(transaction), { pair, sentAt });
    return { socket: pair.socket, to: pair.remote, datagram: encodeCheck(tag, key, transaction, crypto) };
  }

  #noteOpened(): void {
    const remote = this.#remote;
    if (remote === null || this.#opened === remote.number || !this.#local.isComplete) return;
    for (const pair of this.#pairs.values()) if (pair.openersLeft > 0 && !pair.isOver) return;
    this.#opened = remote.number;
    this.#events.push({ kind: 'changed' });
  }

  #addCandidate(candidate: Candidate): void {
    const { isUsable, isNear, reach } = this.#options;
    if (!isUsable(candidate)) {
      this.stats.unusable++;
      return;
    }
    const kind: PairKind = candidate.type === 'host' && isNear(candidate.address) ? 'near' : candidate.type;
    this.#add(kind, { address: reach(candidate.address), port: candidate.port }, MAIN_SOCKET, OPENER_HOPS.length);
  }

  /** Adds the ports that the peer's NAT is expected to assign at its latest address, once per round. */
  #predict(now: number): void {
    const remote = this.#remote;
    if (this.#predicted || remote?.nat?.mapping !== 'sequential' || !this.#local.isComplete) return;
    this.#predicted = true;
    const [own, theirs] = [this.nat(now), translated(remote.candidates).at(-1)];
    if (own === undefined || theirs === undefined) return;
    const opened = Math.max(1, translated(this.#local.candidates).length);
    const address = this.#options.reach(theirs.address);
    for (const port of predictPorts(remote.nat, { ours: own, role: this.#options.role, opened }))
      this.#add('predicted', { address, port }, MAIN_SOCKET, 1);
  }

  #hear(from: SocketAddress, socket: number, now: number): void {
    let pair = this.#pairs.get(Pair.key(from, socket)) ?? null;
    if (pair === null) {
      if (this.#peerReflexive >= MAX_PEER_REFLEXIVE || !this.#options.isUsable(from)) return;
      this.#peerReflexive++;
      pair = this.#add('peer-reflexive', from, socket, 0);
    }
    pair?.hear(now);
  }

  #add(kind: PairKind, remote: SocketAddress, socket: number, openers: number): Pair | null {
    const key = Pair.key(remote, socket);
    if (this.#pairs.has(key) || this.#pairs.size >= MAX_PAIRS) return this.#pairs.get(key) ?? null;
    const pair = new Pair(kind, remote, socket, openers);
    this.#pairs.set(key, pair);
    return pair;
  }
}

/** Returns the NAT's mappings of a socket, the newest last: reports of NATs are about IPv4. */
function translated(candidates: readonly Candidate[]): readonly Candidate[] {
  return candidates.filter(({ type, address }) => type === 'reflexive' && !address.includes(':'));
}

function sameAddress(a: SocketAddress, b: SocketAddress): boolean {
  return a.port === b.port && a.address === b.address;
}
