/**
 * The checklist of a round (RFC 8445 §6.1.2): its pairs, the order in which their packets leave, and the checks whose
 * answers still count. All three are bounded.
 */
import type { SocketAddress } from '../control/index.ts';
import type { Lists, StartTimes } from './lists.ts';
import { MAX_CHECKS, Pair, type PairKind } from './pair.ts';

/** Most pairs in all, and those created only by the peer's checks: by filling them a peer only spoils its own round. */
const MAX_PAIRS = 64;
const MAX_PEER_REFLEXIVE = 16;
/** Most transactions whose answers still count. */
const MAX_TRANSACTIONS = 512;
/** The pairs that a NAT with sequential ports opens first. */
const SEQUENCED: ReadonlySet<PairKind> = new Set<PairKind>(['predicted', 'reflexive']);

/** A packet that went to a pair. */
interface Transaction {
  readonly pair: Pair;
  readonly sentAt: number;
}

export class Checklist {
  /** True when a pair works in both directions. */
  hasAnswer = false;
  readonly #pairs = new Map<string, Pair>();
  readonly #transactions = new Map<string, Transaction>();
  #peerReflexive = 0;

  get pairs(): readonly Pair[] {
    return [...this.#pairs.values()];
  }

  /** True when no opener is left to be sent. */
  get isOpened(): boolean {
    return this.pairs.every(({ openersLeft, isOver }) => openersLeft === 0 || isOver);
  }

  /** Adds a pair. @returns the pair, perhaps a known one; null: the list is full */
  add(kind: PairKind, remote: SocketAddress, socket: number, openers: number): Pair | null {
    const key = Pair.key(remote, socket);
    if (this.#pairs.has(key) || this.#pairs.size >= MAX_PAIRS) return this.#pairs.get(key) ?? null;
    const pair = new Pair(kind, remote, socket, openers);
    this.#pairs.set(key, pair);
    return pair;
  }

  /** Records a check of the peer from there. @param isUsable whether packets may go to an address */
  hear(from: SocketAddress, socket: number, isUsable: (remote: SocketAddress) => boolean, now: number): void {
    let pair = this.#pairs.get(Pair.key(from, socket)) ?? null;
    if (pair === null) {
      if (this.#peerReflexive >= MAX_PEER_REFLEXIVE || !isUsable(from)) return;
      this.#peerReflexive++;
      pair = this.add('peer-reflexive', from, socket, 0);
    }
    pair?.hear(now);
  }

  /** Returns the pair whose packet leaves next, null when none may leave now. */
  due(lists: Lists, now: number): Pair | null {
    const starts = lists.startTimes();
    const inSequence = lists.local.nat?.mapping === 'sequential';
    let first: Pair | null = null;
    for (const pair of this.#pairs.values()) {
      if (wantedAt(pair, starts) > now) continue;
      if (first === null || order(pair, inSequence) < order(first, inSequence)) first = pair;
    }
    return first;
  }

  /** Returns when a pair is due, ms; Infinity: not before something changes. */
  nextTimeout(lists: Lists): number {
    const starts = lists.startTimes();
    return this.pairs.reduce((least, pair) => Math.min(least, wantedAt(pair, starts)), Number.POSITIVE_INFINITY);
  }

  /** Notes a packet to the pair; the oldest one is forgotten when there are too many. */
  begin(id: string, pair: Pair, sentAt: number): void {
    if (this.#transactions.size >= MAX_TRANSACTIONS) this.#transactions.delete(this.#transactions.keys().next().value!);
    this.#transactions.set(id, { pair, sentAt });
  }

  /** Returns the pair to which that packet went; null when it is unknown, or answered already. */
  pairOf(id: string): Pair | null {
    return this.#transactions.get(id)?.pair ?? null;
  }

  /** Records the valid answer to a packet. @returns whether it is the first of its pair */
  answer(id: string, now: number): boolean {
    const { pair, sentAt } = this.#transactions.get(id)!;
    this.#transactions.delete(id);
    if (pair.rtt !== null) return false;
    pair.answer(sentAt, now);
    this.hasAnswer = true;
    return true;
  }

  /** Ends all transactions: no answer counts from now on. */
  end(): void {
    this.#transactions.clear();
  }
}

function wantedAt(pair: Pair, { openers, furtherOpeners, checkWait }: StartTimes): number {
  return pair.openersLeft > 0 ? Math.max(pair.nextOpenerAt(furtherOpeners), openers) : pair.nextCheckAt(checkWait);
}

/**
 * Openers go before checks, and pairs with fewer of them before those with more. If our NAT assigns ports in sequence,
 * the pairs from which the peer's predictions count are opened first.
 */
function order(pair: Pair, inSequence: boolean): number {
  if (pair.openersLeft === 0) return 1_000 + 100 * Math.min(pair.checks, MAX_CHECKS) + pair.rank;
  return 100 * pair.openers + pair.rank - (inSequence && SEQUENCED.has(pair.kind) ? 1_000 : 0);
}
