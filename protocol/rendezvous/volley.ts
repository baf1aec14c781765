/**
 * Many checks that count as one: those of 256 sockets to one address, or of one socket to 1,024 ports (PROTOCOL.md §6).
 * They share a transaction, so that an answer to any of them is recognized without a table.
 */
import { hex } from '@scure/base';
import type { SocketAddress } from '../control/index.ts';
import type { CryptoProvider } from '../crypto-provider.ts';
import { encodeCheck, readCheckAnswer, TRANSACTION_LENGTH, transactionOfAnswer } from '../stun/index.ts';
import { MAIN_SOCKET } from './pair.ts';
import type { RoundPacket } from './round.ts';
import { SprayPlan } from './spray.ts';

/** Destinations and times of the checks. */
export interface VolleyPlan {
  /** Returns the next one that is due; null when none is, or all were returned. */
  next(now: number): Pick<RoundPacket, 'socket' | 'to'> | null;
  /** Infinity when all were returned. */
  nextTimeout(): number;
}

export interface VolleyOptions {
  readonly crypto: Pick<CryptoProvider, 'hmacSha256' | 'randomBytes'>;
  /** The peer's tag and key. */
  readonly tag: Uint8Array;
  readonly key: Uint8Array;
  readonly plan: VolleyPlan;
  /** Absent: the system's default. */
  readonly hopLimit?: number;
}

export class Volley {
  readonly #options: VolleyOptions;
  readonly #id: string;
  readonly #check: Uint8Array;

  constructor(options: VolleyOptions) {
    const { crypto, tag, key } = options;
    const transaction = crypto.randomBytes(TRANSACTION_LENGTH);
    this.#options = options;
    this.#id = hex.encode(transaction);
    this.#check = encodeCheck(tag, key, transaction, crypto);
  }

  /** True when all have left. */
  get isOut(): boolean {
    return this.nextTimeout() === Number.POSITIVE_INFINITY;
  }

  nextTimeout(): number {
    return this.#options.plan.nextTimeout();
  }

  transmit(now: number): RoundPacket | null {
    const { plan, hopLimit } = this.#options;
    const target = plan.next(now);
    return target === null ? null : { ...target, datagram: this.#check, ...(hopLimit !== undefined && { hopLimit }) };
  }

  /** Returns whether a datagram answers one of them. */
  isAnswered(datagram: Uint8Array): boolean {
    const { key, crypto } = this.#options;
    return transactionOfAnswer(datagram) === this.#id && readCheckAnswer(datagram, key, crypto) !== null;
  }
}

/** Plans one check to an address from each of `count` further sockets (from 1), `pace` ms apart. */
export function fromSockets(count: number, to: SocketAddress, pace: number, startAt: number): VolleyPlan {
  let socket = 0;
  let due = startAt;
  return {
    next(now) {
      if (socket === count || now < due) return null;
      due += pace;
      return { socket: ++socket, to };
    },
    nextTimeout: () => (socket === count ? Number.POSITIVE_INFINITY : due),
  };
}

/** Plans checks to random ports of one address, from the main socket (spray.ts). */
export function toRandomPorts(address: string, randomBytes: (length: number) => Uint8Array, startAt: number): VolleyPlan {
  const random = (): number => new DataView(randomBytes(4).slice().buffer).getUint32(0) / 0x1_0000_0000;
  const plan = new SprayPlan(random, startAt);
  return {
    next(now) {
      const port = plan.next(now);
      return port === null ? null : { socket: MAIN_SOCKET, to: { address, port } };
    },
    nextTimeout: () => plan.nextTimeout(),
  };
}
