/**
 * Queries the station's STUN ports for the external addresses of this end's sockets (RFC 8489 Binding, RFC 5780 §4.3),
 * sans-IO.
 *
 * 1. The main socket queries each server, at most three: those that the station named, and one of another family. The
 *    station's main port has already reported what it saw (`known`).
 * 2. If they saw an address other than the main port did, the station is asked for the address that it sees now (event
 *    `station`): the NAT may have forgotten the channel since.
 * 3. If they saw different addresses, three further sockets (event `sockets`) query the first server once each: the
 *    distances of their mappings distinguish sequential ports from random ones.
 * 4. `done`: every request was answered, or abandoned after three tries.
 *
 * A request is repeated after 150 and 350 ms. Answers count only from the queried address and with the transaction that
 * was sent.
 */
import { hex } from '@scure/base';
import type { NatReport, SocketAddress } from '../control/index.ts';
import type { CryptoProvider } from '../crypto-provider.ts';
import { encodeBinding, readBindingAnswer, TRANSACTION_LENGTH } from '../stun/index.ts';
import { classifyNat, type NatSample } from './nat-class.ts';
import { MAIN_SOCKET } from './pair.ts';
import type { RoundPacket } from './round.ts';

const MAX_SERVERS = 3;
/** Number of further sockets, each for one mapping. */
const PROBE_SOCKETS = 3;
/** ms from a request to its next repetition, and to giving up. */
const TIMES: readonly number[] = [150, 200, 400];

export interface SamplerOptions {
  readonly crypto: Pick<CryptoProvider, 'randomBytes'>;
  /** STUN ports of the station, numeric addresses. */
  readonly servers: readonly SocketAddress[];
  /** Port of the main socket. */
  readonly port: number;
  /** Address at which the station's main port saw the main socket, and that port's address; null where unknown. */
  readonly known: { readonly station: SocketAddress; readonly mapped: SocketAddress } | null;
}

interface Request {
  readonly socket: number;
  readonly localPort: number;
  readonly server: SocketAddress;
  readonly transaction: Uint8Array;
  tries: number;
  firstAt: number;
  nextAt: number;
  isOver: boolean;
  mapped: SocketAddress | null;
}

/** A STUN port's answer about the main socket. */
export interface StunAnswer extends SocketAddress {
  /** The main socket as seen from there; null: no answer. */
  readonly mapped: SocketAddress | null;
}

/**
 * `station`: ask the station for the address at which it sees the main socket now, and call `stationAnswered`.
 * `sockets`: open `count` sockets, numbered from 1, and call `socketsOpened` with their ports.
 */
export type SamplerEvent = { readonly kind: 'station' } | { readonly kind: 'sockets'; readonly count: number } | { readonly kind: 'done' };

export class Sampler {
  readonly #options: SamplerOptions;
  readonly #requests = new Map<string, Request>();
  /** The address that the station's main port has seen. */
  #known: NatSample | null;
  readonly #events: SamplerEvent[] = [];
  #stage: 'main' | 'station' | 'checked' | 'sockets' | 'probes' | 'done' = 'main';

  constructor(options: SamplerOptions, now: number) {
    this.#options = options;
    const { known, port } = options;
    this.#known = known === null ? null : this.#seenByStation(known.station, known.mapped);
    for (const server of options.servers.slice(0, MAX_SERVERS)) this.#ask(MAIN_SOCKET, port, server, now);
    this.#advance(now);
  }

  /** True when no server was queried, or none answered. */
  get isSilent(): boolean {
    return this.#samples.every(({ at }) => at === Number.NEGATIVE_INFINITY);
  }

  get isDone(): boolean {
    return this.#stage === 'done';
  }

  /** The main socket's addresses as seen from outside, the newest last, without duplicates. */
  get reflexive(): readonly SocketAddress[] {
    const seen = new Map<string, SocketAddress>();
    for (const { local, mapped } of this.#samples) {
      if (local !== this.#options.port) continue;
      const key = `${mapped.address} ${mapped.port}`;
      seen.delete(key);
      seen.set(key, mapped);
    }
    return [...seen.values()];
  }

  /** Each queried server, with its answer about the main socket. */
  get answers(): readonly StunAnswer[] {
    const ofMain = [...this.#requests.values()].filter(({ socket }) => socket === MAIN_SOCKET);
    return ofMain.map(({ server: { address, port }, mapped }) => ({ address, port, mapped }));
  }

  /** @param ownAddresses of our interfaces, canonical */
  report(ownAddresses: readonly string[], now: number): NatReport {
    return classifyNat(this.#samples, ownAddresses, now);
  }

  /**
   * Call with the address at which the station sees the main socket now; null: it did not report one, and its earlier
   * answer counts.
   */
  stationAnswered(mapped: SocketAddress | null, now: number): void {
    if (this.#stage !== 'station') return;
    this.#stage = 'checked';
    const { known } = this.#options;
    if (known !== null && mapped !== null) this.#known = this.#seenByStation(known.station, mapped);
    this.#advance(now);
  }

  /** Call when the requested sockets are open; fewer, or none, if not all could be opened. */
  socketsOpened(ports: readonly number[], now: number): void {
    if (this.#stage !== 'sockets') return;
    this.#stage = 'probes';
    const server = this.#options.servers[0]!;
    for (const [i, port] of ports.entries()) this.#ask(i + 1, port, server, now);
    this.#advance(now);
  }

  /** @returns true when the datagram is an answer to a request of this sampler */
  receive(datagram: Uint8Array, from: SocketAddress, socket: number, now: number): boolean {
    const answer = readBindingAnswer(datagram);
    const request = answer === null ? undefined : this.#requests.get(answer.transaction);
    if (answer === null || request === undefined) return false;
    const isFromServer = from.address === request.server.address && from.port === request.server.port && socket === request.socket;
    if (!isFromServer || request.isOver) return true;
    request.isOver = true;
    request.mapped = answer.mapped;
    this.#advance(now);
    return true;
  }

  transmit(now: number): RoundPacket | null {
    for (const request of this.#requests.values()) {
      if (request.isOver || request.nextAt > now || request.tries === TIMES.length) continue;
      if (request.tries === 0) request.firstAt = now;
      request.nextAt = now + TIMES[request.tries++]!;
      return { socket: request.socket, to: request.server, datagram: encodeBinding(request.transaction) };
    }
    return null;
  }

  nextEvent(): SamplerEvent | null {
    return this.#events.shift() ?? null;
  }

  nextTimeout(): number {
    let next = Number.POSITIVE_INFINITY;
    for (const { isOver, nextAt } of this.#requests.values()) if (!isOver) next = Math.min(next, nextAt);
    return next;
  }

  handleTimeout(now: number): void {
    for (const request of this.#requests.values())
      if (!request.isOver && request.tries === TIMES.length && request.nextAt <= now) request.isOver = true;
    this.#advance(now);
  }

  /**
   * In the order in which the first requests left, which is that of the mappings; answers arrive in any order, and a
   * lost one late.
   */
  get #samples(): readonly NatSample[] {
    const asked = [...this.#requests.values()].flatMap(({ localPort: local, server, firstAt: at, mapped }) =>
      mapped === null ? [] : { local, to: server.address, toPort: server.port, mapped, at },
    );
    return this.#known === null ? asked : [this.#known, ...asked];
  }

  #ask(socket: number, localPort: number, server: SocketAddress, now: number): void {
    const transaction = this.#options.crypto.randomBytes(TRANSACTION_LENGTH);
    this.#requests.set(hex.encode(transaction), {
      socket,
      localPort,
      server,
      transaction,
      tries: 0,
      firstAt: now,
      nextAt: now,
      isOver: false,
      mapped: null,
    });
  }

  /** That mapping was created long ago: the current mappings come after it. */
  #seenByStation({ address: to, port: toPort }: SocketAddress, mapped: SocketAddress): NatSample {
    return { local: this.#options.port, to, toPort, mapped, at: Number.NEGATIVE_INFINITY };
  }

  #advance(now: number): void {
    if (this.#stage === 'done' || this.#stage === 'station' || this.#stage === 'sockets') return;
    for (const { isOver } of this.#requests.values()) if (!isOver) return;
    if (this.#stage !== 'probes' && this.#differ(now)) {
      const isChecked = this.#stage === 'checked' || this.#known === null;
      this.#stage = isChecked ? 'sockets' : 'station';
      this.#events.push(isChecked ? { kind: 'sockets', count: PROBE_SOCKETS } : { kind: 'station' });
      return;
    }
    this.#stage = 'done';
    this.#events.push({ kind: 'done' });
  }

  /** Returns whether mappings of the main socket differ by destination: then the sequence of ports is still unknown. */
  #differ(now: number): boolean {
    const { mapping } = classifyNat(this.#samples, [], now);
    return mapping === 'random' || mapping === 'sequential';
  }
}
