/**
 * STUN on the socket of a host's connections: its datagrams begin with 0 to 3, which no packet does (RFC 7983,
 * PROTOCOL.md §2). Checks go to the round whose tag they name, answers to the parties that wait for them; nothing else
 * gets an answer. One for each host.
 *
 * Any sender can send STUN here. A check costs a lookup in a table of rounds, and one HMAC if it names a tag, which
 * only the peer and this end know. An answer costs a lookup in the transactions of each waiting party. Only this end
 * fills both tables.
 */

import type { Path } from '../../protocol/path.ts';
import { isStun, tagOfCheck } from '../../protocol/stun/index.ts';
import type { RendezvousHost } from './rendezvous-host.ts';

/** Largest first byte of STUN. */
const LAST_STUN_BYTE = 3;

/** Receives a check of its tag. @returns the answer, null when the check is invalid */
export type CheckReceiver = (check: Uint8Array, path: Path) => Uint8Array | null;
/** @returns true when the answer was for this receiver */
export type AnswerReceiver = (answer: Uint8Array, path: Path) => boolean;

/** Datagrams since the start. */
export interface StunStats {
  checks: number;
  /** Checks for no current round, and anything but a STUN message that a party waits for. */
  unclaimed: number;
}

export class StunDispatcher {
  readonly stats: StunStats = { checks: 0, unclaimed: 0 };
  readonly #host: RendezvousHost;
  readonly #rounds = new Map<string, CheckReceiver>();
  readonly #waiting = new Set<AnswerReceiver>();
  readonly #stop: () => void;

  constructor(host: RendezvousHost) {
    this.#host = host;
    this.#stop = host.intercept((datagram, path) => {
      if (datagram.length === 0 || datagram[0]! > LAST_STUN_BYTE || path.socket !== host.socket.index) return false;
      const answer = this.receive(datagram, path);
      if (answer !== null) this.#host.send(answer, path);
      return true;
    });
  }

  /** Passes checks that name the tag (16 hex digits) to `receiver`. @returns a function that stops this */
  addRound(tag: string, receiver: CheckReceiver): () => void {
    this.#rounds.set(tag, receiver);
    return () => {
      if (this.#rounds.get(tag) === receiver) this.#rounds.delete(tag);
    };
  }

  /** Shows answers to `receiver`. @returns a function that stops this */
  addWaiting(receiver: AnswerReceiver): () => void {
    this.#waiting.add(receiver);
    return () => this.#waiting.delete(receiver);
  }

  /** Receives a STUN message. @returns the answer, if any */
  receive(datagram: Uint8Array, path: Path): Uint8Array | null {
    const tag = isStun(datagram) ? tagOfCheck(datagram) : null;
    const round = tag === null ? undefined : this.#rounds.get(tag);
    if (round !== undefined) {
      this.stats.checks++;
      return round(datagram, path);
    }
    if (tag !== null || !isStun(datagram) || ![...this.#waiting].some((receiver) => receiver(datagram, path))) this.stats.unclaimed++;
    return null;
  }

  close(): void {
    this.#stop();
    this.#rounds.clear();
    this.#waiting.clear();
  }
}
