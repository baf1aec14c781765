/**
 * One round of the rendezvous at one end, sans-IO (PROTOCOL.md §6): what is sent to which address of the peer, what comes back, and which pairs answered.
 * The same at both ends; who tells whom of lists is the business of the agent (agent.ts) and its owner.
 *
 * 1. `setLocal` and `setRemote` give the lists. Each candidate of the peer makes a pair.
 * 2. Openers leave first (`Pair`), those that go further when the other end has had time for its first. When those of the peer's newest list are out,
 *    `opened` is its number, and the other end is to know.
 * 3. Checks with full hop limit leave when the other end has opened, too, or a second later. An end whose NAT gives out ports in sequence opens only when it
 *    knows its last port, and the peer's: what it opens first gets the first of the predicted ports.
 * 4. A check of the peer is verified and answered at once; its source is checked in return.
 * 5. An answer makes a pair: event `answered`. It moves nothing; the connection validates it as a path.
 *
 * One packet leaves in 10 ms, within the budgets of the round and of the host. Datagrams that do not hold have no effect but a count.
 */
import { hex } from '@scure/base';
import type { Candidate, NatReport, RendezvousState, SocketAddress } from '../control/index.ts';
import type { CryptoProvider } from '../crypto-provider.ts';
import { encodeCheck, encodeCheckAnswer, readCheckAnswer, TRANSACTION_LENGTH, transactionOfAnswer, verifyCheck } from '../stun/index.ts';
import { MAIN_SOCKET, MAX_CHECKS, OPENER_HOPS, Pair, type PairKind } from './pair.ts';
import { predictPorts } from './prediction.ts';
import type { RoundBudget, SendVerdict } from './round-budget.ts';

/**
 * ms between two packets of a round, and after the first opener of a pair: the other end expects all of these within FURTHER_MARGIN, and
 * where ports are predicted each foreign flow in between spoils the prediction.
 */
const PACE = 10;
const PACE_FIRST = 1;
/** ms after an opener from which a check may follow although the other end has not opened. */
const UNOPENED_WAIT = 1_000;
/**
 * ms that an end with ports in sequence waits for both lists to be complete before it opens without, and that further openers wait for the
 * other end to say what its NAT does.
 */
const COMPLETE_WAIT = 1_000;
/** ms allowed for the other end's first openers to leave. A device waits one round trip longer: MAX_RTT at most, UNKNOWN_RTT where none was measured. */
const FURTHER_MARGIN = 20;
const MAX_RTT = 500;
const UNKNOWN_RTT = 100;
/** Pairs in all, and those that only checks of the peer made: it may fill them, and ends its own round with it. */
const MAX_PAIRS = 64;
const MAX_PEER_REFLEXIVE = 16;
/** Transactions whose answers still count. */
const MAX_TRANSACTIONS = 512;
/** Checks of the peer that are answered: those of 64 pairs and of 256 sockets are fewer. An answer goes where the check claims to come from. */
const MAX_ANSWERS = 1_024;
/** What is opened first by a NAT that gives out ports in sequence. */
const SEQUENCED: ReadonlySet<PairKind> = new Set<PairKind>(['predicted', 'reflexive']);

/** A datagram to send. */
export interface RoundPacket {
  readonly socket: number;
  readonly to: SocketAddress;
  readonly datagram: Uint8Array;
  /** Absent: the system's. */
  readonly hopLimit?: number;
}

/** `answered`: the pair works in both directions. `changed`: the other end is to hear of `number`, the list, or `opened`. */
export type RoundEvent = { readonly kind: 'answered'; readonly pair: Pair } | { readonly kind: 'changed' };

export interface RoundOptions {
  readonly crypto: Pick<CryptoProvider, 'hmacSha256' | 'randomBytes'>;
  /** Ours, 8 and 16 bytes, fresh for the round. */
  readonly tag: Uint8Array;
  readonly key: Uint8Array;
  readonly role: 'client' | 'device';
  /** Released by the owner of the round. */
  readonly budget: RoundBudget;
  /** Round trip of the connection over which the ends exchange their lists, ms; null while none was measured. */
  readonly rtt: number | null;
  /** Whether an address is in a network of ours. */
  isNear(address: string): boolean;
  /** Whether a candidate of the peer may be sent to: no loopback, multicast, …, own address. */
  isUsable(candidate: SocketAddress): boolean;
  /** How this host reaches an address: itself, or the IPv6 address that a NAT64 translates to it (RFC 6052). */
  reach(address: string): string;
}

/** What this end says of itself. */
export interface LocalView {
  readonly candidates: readonly Candidate[];
  /** Absent while it is being found out. */
  readonly nat?: NatReport;
  /** Nothing more will be found out: STUN has answered, or will not. */
  readonly isComplete: boolean;
}

interface Transaction {
  readonly pair: Pair;
  readonly sentAt: number;
}

export class Round {
  /** Datagrams that named our tag and did not hold or were too many, and candidates that were passed over. */
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
  /** When the peer first said what its NAT does: it opens from then on. */
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

  /** What our NAT does, with the age of what is known of it. */
  nat(now: number): NatReport | undefined {
    const { nat } = this.#local;
    return nat?.age === undefined ? nat : { ...nat, age: Math.round(nat.age + now - this.#natAt) };
  }

  /** Every pair has failed. */
  get isExhausted(): boolean {
    return this.#remote !== null && this.#local.isComplete && this.pairs.every(({ state }) => state === 'failed');
  }

  /** Some pair works in both directions. */
  get hasAnswer(): boolean {
    return this.#hasAnswer;
  }

  /** This end has learnt more of itself. */
  setLocal(local: LocalView, now: number): void {
    this.#local = local;
    this.#natAt = now;
    this.#number++;
    this.#events.push({ kind: 'changed' });
  }

  /** What the peer says; older lists than the one that is known are passed over. */
  setRemote(remote: RendezvousState, now: number): void {
    const known = this.#remote;
    if (known !== null && remote.number < known.number) return;
    if (remote.nat !== undefined) this.#remoteCompleteAt = Math.min(this.#remoteCompleteAt, now);
    this.#remote = { ...remote, opened: Math.max(remote.opened, known?.opened ?? 0) };
    if (known?.number === remote.number) return;
    for (const candidate of remote.candidates) this.#addCandidate(candidate);
  }

  /** A check that names our tag, from `from` on `socket`. @returns the answer, to be sent back from there; null when it does not hold */
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

  /** An answer. @returns our address as the peer sees it; null when the answer is none of ours, or does not hold */
  receiveAnswer(datagram: Uint8Array, from: SocketAddress, socket: number, now: number): SocketAddress | null {
    const id = transactionOfAnswer(datagram);
    const transaction = id === null ? undefined : this.#transactions.get(id);
    if (id === null || transaction === undefined || this.#remote === null || this.#over) return null;
    const { pair, sentAt } = transaction;
    const mapped = readCheckAnswer(datagram, this.#remote.key, this.#options.crypto);
    // RFC 8445 §7.2.5.2.1: an answer from elsewhere shows no pair.
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

  /** A pair that was found otherwise, such as by spraying: it is checked at once. */
  addPair(remote: SocketAddress, socket: number, now: number): Pair | null {
    const pair = this.#add('peer-reflexive', remote, socket, 0);
    pair?.hear(now);
    return pair;
  }

  /** The next packet, null when none may leave now. */
  transmit(now: number): RoundPacket | null {
    if (this.#over || now < this.#nextSendAt) return null;
    const packet = this.#nextPacket(now);
    this.#noteOpened();
    return packet;
  }

  nextEvent(): RoundEvent | null {
    return this.#events.shift() ?? null;
  }

  /** When `transmit` may have something, ms; Infinity: not before something changes. */
  nextTimeout(): number {
    if (this.#over || this.#remote === null) return Number.POSITIVE_INFINITY;
    let next = Number.POSITIVE_INFINITY;
    for (const pair of this.#pairs.values()) next = Math.min(next, this.#wantedAt(pair));
    return Math.max(next, this.#nextSendAt);
  }

  /** Nothing is sent or answered from now on. The keys of both ends are wiped. */
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
   * Openers go before checks, and pairs with fewer of them before those with more. A NAT of ours that gives out ports in sequence opens first what the peer's
   * predictions count from.
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
   * When further openers may follow the first of a pair: one that reached the NAT of an end that has not opened yet would claim the mapping there. A device
   * opens before it says what its NAT does, but for one with ports in sequence, which opens when it knows the client's NAT; a client opens
   * at the latest when it has heard of the device.
   */
  readonly #furtherBegin = (): number => {
    if (this.#hasPeerOpened) return Number.NEGATIVE_INFINITY;
    const completeAt = Math.min(this.#remoteCompleteAt, this.#startedAt + COMPLETE_WAIT);
    const rtt = Math.min(this.#options.rtt ?? UNKNOWN_RTT, MAX_RTT);
    if (this.#options.role === 'device') return completeAt + rtt + FURTHER_MARGIN;
    const isLate = this.#remote?.nat?.mapping === 'sequential';
    return FURTHER_MARGIN + (isLate ? Math.max(completeAt, this.#natAt + rtt) : completeAt);
  };

  /** With a NAT that gives out ports in sequence the order of what is opened counts. */
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

  /** The host sends its most now; else the budget has no more for the pair. */
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

  /** Ports that the peer's NAT is expected to give out at the address that it gave out last, once in a round. */
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

/** What a NAT makes of a socket, the newest last: reports of NATs are about IPv4. */
function translated(candidates: readonly Candidate[]): readonly Candidate[] {
  return candidates.filter(({ type, address }) => type === 'reflexive' && !address.includes(':'));
}

function sameAddress(a: SocketAddress, b: SocketAddress): boolean {
  return a.port === b.port && a.address === b.address;
}
