/**
 * A WebSocket between two simulated hosts: an ordered pipe of whole messages over two TCP flows (tcp-flow.ts), with
 * controls for tests.
 *
 * Handshakes, messages and the end travel in the same flows, so the link's delay, rate and loss affect all of them.
 * There are no frames and no pings.
 */

import type { MessagePipe } from '../platform/environment.ts';
import type { SocketAddress } from '../protocol/control/index.ts';
import { RemoteError, type SvcError } from '../protocol/errors/index.ts';
import { Phase, type SimulationEvent } from './event-queue.ts';
import type { SimulatedHost } from './host.ts';
import type { Link } from './link.ts';
import { Flow, type Reach } from './tcp-flow.ts';
import type { WebSocketHandlers } from './web-socket.ts';

/** RFC 6455 §7.4.1: it ended without a closing handshake. */
const ABNORMAL_CLOSURE = 1006;
const NORMAL_CLOSURE = 1000;
/** A close frame and a FIN. */
const CLOSE_SIZE = 40;

/** Interface of the simulation for a pipe. */
export interface PipeClock {
  readonly now: number;
  at(time: number, phase: Phase, run: () => void): SimulationEvent;
}

/** Options of one end of a pipe. */
interface EndOptions {
  readonly host: SimulatedHost;
  /** The peer's address as this end sees it. */
  readonly peer: SocketAddress;
  readonly out: Flow;
  readonly other: () => PipeEnd;
  /** Passes arrivals through the proxy, if there is one. */
  readonly pass: (arrived: () => void) => void;
  readonly ended: () => void;
}

/** A host's end of a pipe. Made by {@link SimulatedPipe}. */
export class PipeEnd implements MessagePipe {
  readonly index: number;
  readonly address: string;
  readonly port: number;
  readonly proxy: null = null;

  readonly #options: EndOptions;
  /** Null until the upgrade has succeeded. */
  #handlers: WebSocketHandlers | null = null;
  /** Sends that wait until then. */
  #early: (() => void)[] = [];
  /** `sent` of each message that has not left. */
  #unsent: (() => void)[] = [];
  #open = true;

  constructor(options: EndOptions) {
    this.index = options.host.nextSocketIndex();
    this.address = options.peer.address;
    this.port = options.peer.port;
    this.#options = options;
  }

  get isOpen(): boolean {
    return this.#open;
  }

  /** For the pipe: the upgrade has succeeded. */
  open(handlers: WebSocketHandlers): void {
    this.#handlers = handlers;
    for (const send of this.#early.splice(0)) send();
  }

  /** Whether the upgrade has succeeded at this end. */
  get isUsed(): boolean {
    return this.#handlers !== null;
  }

  send(message: Uint8Array, sent: () => void): void {
    const { host, out, other, pass } = this.#options;
    if (!this.#open) {
      host.clock.defer(sent);
      return;
    }
    const copy = message.slice();
    this.#unsent.push(sent);
    const taken = (): void => host.run(() => this.#unsent.shift()?.());
    this.#transmit(() => out.send(copy.length, () => pass(() => other().take(copy)), taken));
  }

  close(code: number = NORMAL_CLOSURE): void {
    if (!this.#open) return;
    const { out, other, pass } = this.#options;
    this.#shut();
    const error = closed(`the peer closed the WebSocket with ${code}`);
    this.#transmit(() => out.send(CLOSE_SIZE, () => pass(() => other().fail(error))));
    this.#options.ended();
  }

  /** For the pipe: a message arrives. */
  take(message: Uint8Array): void {
    if (this.#open) this.#options.host.run(() => this.#open && this.#handlers?.receive(message));
    else this.#options.other().fail(reset());
  }

  /** For the pipe: it has ended, but not by this end's host. */
  fail(error: SvcError): void {
    if (!this.#open) return;
    this.abort();
    this.#options.host.run(() => this.#handlers?.closed(error));
  }

  /** For the pipe: removes it at once. */
  abort(): void {
    if (!this.#open) return;
    this.#shut();
    this.#options.out.end();
    this.#options.ended();
  }

  #transmit(send: () => void): void {
    if (this.#handlers === null) this.#early.push(send);
    else send();
  }

  #shut(): void {
    this.#open = false;
    const unsent = this.#unsent;
    this.#unsent = [];
    if (unsent.length === 0) return;
    this.#options.host.clock.defer(() => {
      for (const sent of unsent) sent();
    });
  }
}

export const SIDES = ['opener', 'acceptor'] as const;
/** One end of a pipe. */
export type Side = (typeof SIDES)[number];

/** Parties and surroundings of a pipe. */
export interface PipeOptions {
  readonly url: string;
  readonly clock: PipeClock;
  readonly hosts: Readonly<Record<Side, SimulatedHost>>;
  /** The peer address that each end sees. */
  readonly peers: Readonly<Record<Side, SocketAddress>>;
  /** The link that its packets leave on. */
  readonly links: Readonly<Record<Side, Link>>;
  /** Whether packets of one end reach the other. */
  readonly reach: (from: Side) => Reach;
  /** Called when it is gone at both ends. */
  readonly ended: () => void;
}

/** A WebSocket as a test sees it, from the moment its opener begins to open it. */
export class SimulatedPipe {
  readonly url: string;
  /** Names of the hosts. */
  readonly opener: string;
  readonly acceptor: string;
  /** For the simulation. */
  readonly hosts: PipeOptions['hosts'];
  readonly flows: Readonly<Record<Side, Flow>>;
  readonly ends: Readonly<Record<Side, PipeEnd>>;
  /** For the simulation: receives the error that ends it, before the ends do. */
  failed: (error: SvcError) => void = () => {};

  readonly #options: PipeOptions;
  #halfOpen = false;
  #passedAt = 0;
  #batchTime = 0;
  #batch: (() => void)[] = [];

  constructor(options: PipeOptions) {
    this.url = options.url;
    this.opener = options.hosts.opener.name;
    this.acceptor = options.hosts.acceptor.name;
    this.hosts = options.hosts;
    this.#options = options;
    this.flows = { opener: this.#flow('opener'), acceptor: this.#flow('acceptor') };
    this.ends = { opener: this.#end('opener'), acceptor: this.#end('acceptor') };
  }

  /**
   * Stops all traffic both ways, and calls no `sent` beyond what fits into `sendBuffer`, until {@link resume}. Nothing
   * is lost.
   */
  stall(): void {
    for (const side of SIDES) this.flows[side].stall();
  }

  resume(): void {
    for (const side of SIDES) this.flows[side].resume();
  }

  /**
   * Cuts both ends off from each other silently (RFC 9293 §3.5.1). Messages leave, up to the kernels' capacity, and
   * arrive nowhere; an end notices this a quarter of an hour after it sent something.
   */
  halfOpen(): void {
    this.#halfOpen = true;
  }

  /** Reports a connection reset to both ends at once. */
  cut(): void {
    this.failed(reset());
    for (const side of SIDES) this.ends[side].fail(reset());
  }

  /** Puts a proxy in between that cuts it after `ms` of virtual time in which no message passes. */
  limitIdle(ms: number): void {
    const { clock } = this.#options;
    this.#passedAt = clock.now;
    const check = (): void => {
      if (!SIDES.some((side) => this.ends[side].isOpen)) return;
      if (clock.now - this.#passedAt >= ms) this.cut();
      else clock.at(this.#passedAt + ms, Phase.ARRIVAL, check);
    };
    check();
  }

  /** Makes a proxy pass on arrivals every `ms` of virtual time only; 0: as they come. */
  batch(ms: number): void {
    this.#batchTime = ms;
    if (ms === 0) this.#passBatch();
  }

  /** For the simulation: the kernel of one end resets it, once. */
  reset(side: Side): void {
    const { clock, links, reach } = this.#options;
    const reached = reach(side) === 'open' && !this.#halfOpen;
    const far = this.ends[opposite(side)];
    this.ends[side].abort();
    if (!far.isUsed) far.abort();
    if (!reached) return;
    links[side].offer(CLOSE_SIZE, clock.now, (time) => clock.at(time, Phase.ARRIVAL, () => far.fail(reset())));
  }

  #flow(side: Side): Flow {
    const { clock, links, reach } = this.#options;
    return new Flow({
      now: () => clock.now,
      at: (time, run) => clock.at(time, Phase.ARRIVAL, run),
      link: links[side],
      back: links[opposite(side)],
      reach: () => (this.#halfOpen ? 'closed' : reach(side)),
      sendBuffer: this.hosts[side].sendBuffer,
      runs: () => this.hosts[side].awake,
      failed: (why) => this.#fail(side, why),
    });
  }

  #end(side: Side): PipeEnd {
    const { peers, ended } = this.#options;
    const other = (): PipeEnd => this.ends[opposite(side)];
    return new PipeEnd({
      host: this.hosts[side],
      peer: peers[side],
      out: this.flows[side],
      other,
      pass: (arrived) => this.#pass(arrived),
      ended: () => !other().isOpen && ended(),
    });
  }

  #fail(side: Side, why: 'reset' | 'timeout'): void {
    const error = why === 'reset' ? reset() : new RemoteError('TIMEOUT', `data sent to ${this.url} was not acknowledged`);
    this.failed(error);
    this.ends[side].fail(error);
  }

  #pass(arrived: () => void): void {
    const { clock } = this.#options;
    this.#passedAt = clock.now;
    if (this.#batchTime === 0) {
      arrived();
    } else if (this.#batch.push(arrived) === 1) {
      const next = (Math.floor(clock.now / this.#batchTime) + 1) * this.#batchTime;
      clock.at(next, Phase.ARRIVAL, () => this.#passBatch());
    }
  }

  #passBatch(): void {
    const batch = this.#batch;
    this.#batch = [];
    for (const arrived of batch) arrived();
  }
}

function opposite(side: Side): Side {
  return side === 'opener' ? 'acceptor' : 'opener';
}

function reset(): SvcError {
  return closed(`the connection was reset (${ABNORMAL_CLOSURE})`);
}

function closed(message: string): SvcError {
  return new RemoteError('CLOSED', message);
}
