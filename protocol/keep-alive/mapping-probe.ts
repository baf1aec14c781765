/**
 * Tests whether a NAT mapping survives a silence (RFC 5780 §4.6), on a mapping that nothing else uses.
 *
 *   exchanges   a fresh socket X queries the station's STUN port three times in three seconds: connection tracking of
 *               Linux treats a flow as lasting, like a channel, only after traffic both ways for more than two seconds
 *   silence     nothing, for the given time
 *   own         shortly before its end another socket Y asks for its external address: if it differs from X's, the
 *               answer to the next step would not reach X
 *   asked       Y requests the answer at X's external port, three times half a second apart. X receives it: it lived
 *
 * The station's port is the same throughout, so a filter of the NAT admits the answer for as long as it remembers X.
 *
 *   lived   X has received it          died      Y was answered, X has received nothing
 *   void    no answers at all: the network, or the limits of the station; or the host was late, and the silence longer
 *   unfit   not possible here: several external addresses, a port below 1,024, a station that answers to Y
 *
 * Methods: receive, transmit, nextTimeout, handleTimeout, nextEvent; poll the results again after each call.
 */
import { hex } from '@scure/base';
import type { SocketAddress } from '../address.ts';
import type { CryptoProvider } from '../crypto-provider.ts';
import { encodeBinding, encodeBindingToPort, MIN_RESPONSE_PORT, readBindingAnswer, TRANSACTION_LENGTH } from '../stun/index.ts';

/** The outcome of a probe. */
export type ProbeVerdict = 'lived' | 'died' | 'void' | 'unfit';

/** Numbers of its sockets. */
export const MAPPED = 1;
export const ASKING = 2;

/** `open`: open a socket of that number, on a port that the system chooses, then call `opened`. */
export type ProbeEvent = { readonly kind: 'open'; readonly socket: number } | { readonly kind: 'done'; readonly verdict: ProbeVerdict };

export interface ProbePacket {
  readonly socket: number;
  readonly to: SocketAddress;
  readonly datagram: Uint8Array;
}

export interface ProbeOptions {
  readonly crypto: Pick<CryptoProvider, 'randomBytes'>;
  /** STUN port of the station, which supports RESPONSE-PORT; numeric address in canonical text. */
  readonly server: SocketAddress;
  /** ms */
  readonly silence: number;
}

/** Our constants, ms: the interval between exchanges. */
const EXCHANGE_PAUSE = 1_500;
const EXCHANGES = 3;
/** From a request to its repetitions, and to the end of the wait. */
const TIMES = [500, 1_000, 1_500] as const;
/** As `TIMES`, for requests whose answer goes to X. */
const ASK_TIMES = [500, 500, 1_500] as const;
/** Y is opened this long before the silence ends. */
const LEAD = 4_000;
/** A loss counts only if the silence was at most this much longer than planned. */
const LATE = 500;

interface Request {
  readonly socket: number;
  readonly datagram: Uint8Array;
  readonly transaction: string;
  readonly times: readonly number[];
  tries: number;
  nextAt: number;
}

export class MappingProbe {
  readonly #options: ProbeOptions;
  readonly #events: ProbeEvent[] = [{ kind: 'open', socket: MAPPED }];
  #stage: 'opening' | 'exchanges' | 'silence' | 'own' | 'ready' | 'asked' | 'done' = 'opening';
  #request: Request | null = null;
  /** When the next step other than a repetition is due. */
  #nextAt = Number.POSITIVE_INFINITY;
  #exchanges = 0;
  /** X's external address. */
  #mapped: SocketAddress | null = null;
  /** When X sent last. */
  #sentAt = 0;
  /** The silence was longer than planned. */
  #isLate = false;

  constructor(options: ProbeOptions) {
    this.#options = options;
  }

  /** Call when the socket of that number is open. */
  opened(socket: number, now: number): void {
    if (socket === MAPPED && this.#stage === 'opening') {
      this.#stage = 'exchanges';
      this.#ask(MAPPED, now);
    } else if (socket === ASKING && this.#stage === 'own') this.#ask(ASKING, now);
  }

  /** Call when a socket could not be opened. */
  failed(): void {
    this.#end('void');
  }

  receive(datagram: Uint8Array, from: SocketAddress, socket: number, now: number): void {
    const { server } = this.#options;
    const request = this.#request;
    if (request === null || from.address !== server.address || from.port !== server.port) return;
    const answer = readBindingAnswer(datagram);
    if (answer === null || answer.transaction !== request.transaction) return;
    if (this.#stage === 'asked') this.#end(socket === MAPPED ? 'lived' : 'unfit');
    else if (socket !== request.socket) return;
    else if (this.#stage === 'exchanges') this.#exchanged(answer.mapped, now);
    else if (this.#stage === 'own') this.#seen(answer.mapped);
  }

  transmit(now: number): ProbePacket | null {
    const request = this.#request;
    if (request === null || request.nextAt > now || request.tries === request.times.length) return null;
    request.nextAt = now + request.times[request.tries++]!;
    if (request.socket === MAPPED) this.#sentAt = now;
    return { socket: request.socket, to: this.#options.server, datagram: request.datagram };
  }

  nextTimeout(): number {
    return Math.min(this.#nextAt, this.#request?.nextAt ?? Number.POSITIVE_INFINITY);
  }

  handleTimeout(now: number): void {
    const request = this.#request;
    if (request !== null && request.tries === request.times.length && request.nextAt <= now) this.#unanswered();
    if (this.#nextAt > now) return;
    this.#nextAt = Number.POSITIVE_INFINITY;
    if (this.#stage === 'exchanges') this.#ask(MAPPED, now);
    else if (this.#stage === 'silence') this.#open(now);
    else if (this.#stage === 'own') this.#end('void');
    else if (this.#stage === 'ready') this.#askForX(now);
  }

  nextEvent(): ProbeEvent | null {
    return this.#events.shift() ?? null;
  }

  #ask(socket: number, now: number): void {
    const transaction = this.#options.crypto.randomBytes(TRANSACTION_LENGTH);
    this.#send(socket, encodeBinding(transaction), transaction, TIMES, now);
  }

  #exchanged(mapped: SocketAddress, now: number): void {
    const before = this.#mapped ?? mapped;
    if (mapped.port < MIN_RESPONSE_PORT || mapped.address !== before.address || mapped.port !== before.port) {
      this.#end('unfit');
      return;
    }
    this.#mapped = mapped;
    this.#request = null;
    this.#exchanges++;
    if (this.#exchanges < EXCHANGES) this.#nextAt = now + EXCHANGE_PAUSE;
    else {
      this.#stage = 'silence';
      this.#nextAt = this.#sentAt + this.#options.silence - LEAD;
    }
  }

  #open(now: number): void {
    this.#stage = 'own';
    // Bounds the wait for a socket that neither opens nor fails.
    this.#nextAt = now + LEAD;
    this.#events.push({ kind: 'open', socket: ASKING });
  }

  #seen({ address }: SocketAddress): void {
    if (address !== this.#mapped!.address) {
      this.#end('unfit');
      return;
    }
    this.#request = null;
    this.#stage = 'ready';
    this.#nextAt = this.#sentAt + this.#options.silence;
  }

  #askForX(now: number): void {
    const transaction = this.#options.crypto.randomBytes(TRANSACTION_LENGTH);
    this.#stage = 'asked';
    this.#isLate = now - this.#sentAt > this.#options.silence + LATE;
    this.#send(ASKING, encodeBindingToPort(this.#mapped!.port, transaction), transaction, ASK_TIMES, now);
  }

  #unanswered(): void {
    this.#end(this.#stage === 'asked' && !this.#isLate ? 'died' : 'void');
  }

  #send(socket: number, datagram: Uint8Array, transaction: Uint8Array, times: readonly number[], now: number): void {
    this.#request = { socket, datagram, transaction: hex.encode(transaction), times, tries: 0, nextAt: now };
  }

  #end(verdict: ProbeVerdict): void {
    if (this.#stage === 'done') return;
    this.#stage = 'done';
    this.#request = null;
    this.#nextAt = Number.POSITIVE_INFINITY;
    this.#events.push({ kind: 'done', verdict });
  }
}
