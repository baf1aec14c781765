/**
 * Two connections over a link in memory, in virtual time: the smallest world of the data plane.
 *
 * The link delays, loses, duplicates and reorders with a seeded generator. Before it a line of limited rate with a
 * queue may delay or drop packets, and several pairs may share one. `run` jumps from one event time to the next;
 * nothing sleeps. Each end collects its events; `onEvent` lets a test act on them.
 */
import { Core, type CoreConnection, type CoreConnectionOptions, type DataParameters, EventKind } from '../../bindings/index.ts';
import { generator } from '../support/crypto.ts';

/**
 * Linear memory of a pair's own core. V8 collects all garbage after each 64 MiB of such memory, so it is small; a
 * test that needs more asks for it.
 */
const CORE_MEMORY = 8 << 20;

/** Bytes; more than the largest packet. */
const SLAB = 1 << 18;

export interface Link {
  /** One way, ms. */
  delay: number;
  /** Additional random delay up to this, ms: packets overtake each other. */
  jitter: number;
  /** Probabilities. */
  loss: number;
  duplicate: number;
}

/** A line of `rate` bits a second (UDP payload) behind a queue of `queue` bytes that drops packets that do not fit. */
export class Line {
  rate: number;
  queue: number;
  passed = 0;
  dropped = 0;
  /** Longest queueing delay of a packet, ms. */
  longestWait = 0;
  #freeAt = 0;

  constructor(rate: number, queue: number) {
    this.rate = rate;
    this.queue = queue;
  }

  /** Time at which a packet of `length` bytes has left; null = dropped. */
  pass(length: number, now: number): number | null {
    if (this.rate === Number.POSITIVE_INFINITY) return now;
    const wait = Math.max(0, this.#freeAt - now);
    if ((wait * this.rate) / 8_000 + length > this.queue) {
      this.dropped++;
      return null;
    }
    this.passed++;
    this.longestWait = Math.max(this.longestWait, wait);
    this.#freeAt = now + wait + (length * 8_000) / this.rate;
    return this.#freeAt;
  }
}

export interface PairOptions {
  seed?: number;
  link?: Partial<Link>;
  /** The line for packets of the initiator; the other direction has no limit. */
  line?: Line;
  /** Timers fire at multiples of this many ms, as on real platforms; default 0, exactly. */
  granularity?: number;
  /** See {@link Pair.turn}; default 0. */
  turn?: number;
  core?: Core;
  /** Bytes of linear memory of a core of its own. */
  memory?: number;
  initiator?: Partial<CoreConnectionOptions>;
  responder?: Partial<CoreConnectionOptions>;
  parameters?: Partial<DataParameters>;
  /** A Complete packet of this length is sent first. */
  complete?: number;
}

export const PARAMETERS: DataParameters = {
  idleTimeout: 60_000,
  maxUdpPayload: 1_452,
  initialMaxData: 1_048_576,
  initialMaxStreamData: 262_144,
  maxStreams: 100,
  maxMessages: 256,
  maxAckDelay: 25,
  maxDatagram: 1_200,
};

interface InFlight {
  at: number;
  to: End;
  bytes: Uint8Array;
}

export interface ReportedEvent {
  kind: EventKind;
  stream: number;
  value: number;
}

export class End {
  readonly connection: CoreConnection;
  readonly events: ReportedEvent[] = [];
  readonly isInitiator: boolean;
  onEvent: (event: ReportedEvent, end: End) => void = () => {};
  peer!: End;
  /** Every datagram that this end sent, when `record` is set. */
  sent: Uint8Array[] = [];
  record = false;

  constructor(connection: CoreConnection, isInitiator: boolean) {
    this.connection = connection;
    this.isInitiator = isInitiator;
  }

  kinds(): EventKind[] {
    return this.events.map((event) => event.kind);
  }
}

export class Pair {
  now = 1_000;
  readonly core: Core;
  readonly initiator: End;
  readonly responder: End;
  readonly ends: readonly [End, End];
  readonly link: Link;
  /** Changes, drops (null) or passes each datagram; called before the link's own loss. */
  intercept: (datagram: Uint8Array, from: End) => Uint8Array | null = (datagram) => datagram;
  delivered = 0;
  /**
   * Ends process packets and timers only at multiples of this many ms, like processes that wait for a processor; 0 = at
   * once.
   */
  turn: number;
  readonly #random: () => number;
  readonly #line: Line | null;
  readonly #granularity: number;
  /** Sorted by time of arrival, then order of sending; entries before `#first` are delivered. */
  #queue: InFlight[] = [];
  #first = 0;
  /** Remainder of the buffer that packets in flight share: a buffer for each takes longer to allocate. */
  #slab = new Uint8Array(0);

  constructor(options: PairOptions = {}) {
    this.core = options.core ?? Core.create({ memory: options.memory ?? CORE_MEMORY });
    this.#random = generator(options.seed ?? 1);
    this.#line = options.line ?? null;
    this.#granularity = options.granularity ?? 0;
    this.turn = options.turn ?? 0;
    this.link = { delay: 10, jitter: 0, loss: 0, duplicate: 0, ...options.link };
    const parameters = { ...PARAMETERS, ...options.parameters };
    const common = {
      local: parameters,
      remote: parameters,
      skipSeed: (options.seed ?? 1) * 77,
      challengeSeed: fill(options.seed ?? 1),
      now: this.now,
    };
    const complete = options.complete ? { complete: new Uint8Array(options.complete).fill(0x83) } : {};
    this.initiator = new End(
      this.core.open({
        initiator: true,
        sendKey: fill(1),
        receiveKey: fill(2),
        sendMaskKey: fill(3),
        receiveMaskKey: fill(4),
        localId: id(1),
        remoteId: id(2),
        ...common,
        ...complete,
        ...options.initiator,
      }),
      true,
    );
    this.responder = new End(
      this.core.open({
        initiator: false,
        sendKey: fill(2),
        receiveKey: fill(1),
        sendMaskKey: fill(4),
        receiveMaskKey: fill(3),
        localId: id(2),
        remoteId: id(1),
        ...common,
        ...options.responder,
      }),
      false,
    );
    this.initiator.peer = this.responder;
    this.responder.peer = this.initiator;
    this.ends = [this.initiator, this.responder];
  }

  /** Runs until `done` returns true or `limit` ms have passed; returns whether `done` did. */
  run(limit: number, done: () => boolean = () => false): boolean {
    return runTogether([this], limit, done);
  }

  /** Processes events and packets of this instant until neither end has any. */
  settle(): void {
    for (let round = 0; round < 10_000; round++) {
      const first = this.#pump(this.initiator);
      const second = this.#pump(this.responder);
      if (!first && !second) return;
    }
    throw new Error('the two ends never come to rest');
  }

  /** Time of the next event. */
  next(): number {
    const timer = Math.min(this.initiator.connection.nextTimeout(), this.responder.connection.nextTimeout());
    return upTo(Math.min(this.#nextDelivery(), upTo(timer, this.#granularity)), this.turn);
  }

  /** Deliveries and timers that are due at `now`. */
  advance(now: number): void {
    this.now = now;
    this.#deliver();
    for (let i = 0; i < 2; i++) {
      const { connection } = this.ends[i]!;
      if (connection.nextTimeout() <= this.now) connection.handleTimeout(this.now);
    }
  }

  /** Hands `bytes` to an end as if they came from the network. */
  inject(bytes: Uint8Array, to: End): boolean {
    return to.connection.receive(bytes, 0, this.now);
  }

  free(): void {
    for (const end of this.ends) end.connection.free();
  }

  #pump(end: End): boolean {
    let busy = false;
    for (let kind = end.connection.nextEvent(); kind !== EventKind.NONE; kind = end.connection.nextEvent()) {
      const event = { kind, stream: end.connection.eventStream, value: end.connection.eventValue };
      end.events.push(event);
      end.onEvent(event, end);
      busy = true;
    }
    for (let count = end.connection.transmit(this.now); count > 0; count = end.connection.transmit(this.now)) {
      busy = true;
      for (let i = 0; i < count; i++) {
        const offset = this.core.packetOffsets[i] as number;
        const bytes = this.#copy(offset, this.core.packetLengths[i] as number);
        this.core.release(offset);
        this.#send(bytes, end);
      }
    }
    return busy;
  }

  #copy(offset: number, length: number): Uint8Array {
    if (this.#slab.length < length) this.#slab = new Uint8Array(SLAB);
    const bytes = this.#slab.subarray(0, length);
    this.#slab = this.#slab.subarray(length);
    bytes.set(this.core.buffer.subarray(offset, offset + length));
    return bytes;
  }

  #send(bytes: Uint8Array, from: End): void {
    if (from.record) from.sent.push(bytes);
    const passed = this.intercept(bytes, from);
    if (passed === null) return;
    const left = this.#line && from.isInitiator ? this.#line.pass(passed.length, this.now) : this.now;
    if (left === null || this.#random() < this.link.loss) return;
    this.#enqueue(passed, from.peer, left);
    if (this.#random() < this.link.duplicate) this.#enqueue(passed, from.peer, left);
  }

  #enqueue(bytes: Uint8Array, to: End, left: number): void {
    const at = left + this.link.delay + this.#random() * this.link.jitter;
    let index = this.#queue.length;
    while (index > this.#first && (this.#queue[index - 1] as InFlight).at > at) index--;
    const packet = { at, to, bytes };
    if (index === this.#queue.length) this.#queue.push(packet);
    else this.#queue.splice(index, 0, packet);
  }

  #nextDelivery(): number {
    return this.#queue[this.#first]?.at ?? Number.POSITIVE_INFINITY;
  }

  #deliver(): void {
    while (this.#nextDelivery() <= this.now) {
      const { to, bytes } = this.#queue[this.#first++] as InFlight;
      this.delivered++;
      // The responder's driver verifies the Complete packet and reports it to the core.
      if (bytes[0] === 0x83) to.connection.completeReceived(this.now);
      else to.connection.receive(bytes, 0, this.now);
    }
    if (this.#first < 1_000) return;
    this.#queue = this.#queue.slice(this.#first);
    this.#first = 0;
  }
}

/** Runs pairs in shared time until `done` returns true or `limit` ms have passed; returns whether `done` did. */
export function runTogether(pairs: readonly Pair[], limit: number, done: () => boolean = () => false): boolean {
  const clock = pairs[0] as Pair;
  const until = clock.now + limit;
  for (;;) {
    for (const pair of pairs) pair.settle();
    if (done()) return true;
    let next = Number.POSITIVE_INFINITY;
    for (const pair of pairs) next = Math.min(next, pair.next());
    const now = Math.max(clock.now, Math.min(next, until));
    if (next > until) {
      for (const pair of pairs) pair.now = until;
      return done();
    }
    for (const pair of pairs) pair.advance(now);
  }
}

/** The next multiple of `step`; 0 = any time. */
function upTo(time: number, step: number): number {
  return step === 0 || time === Number.POSITIVE_INFINITY ? time : Math.ceil(time / step) * step;
}

function fill(value: number): Uint8Array {
  return new Uint8Array(32).fill(value);
}

function id(value: number): Uint8Array {
  return new Uint8Array(8).fill(value);
}
