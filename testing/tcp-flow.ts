/**
 * One direction of a TCP connection, as its user sees it: everything arrives once, in order, sooner or later.
 *
 * 1. Data is cut into segments, and up to `LINE_SEGMENTS` of them wait for the line of the link at a time: the rest
 *    waits here, so a slow link slows the sender down.
 * 2. A segment that the link loses, damages or has no room for is sent again after {@link RETRANSMISSION} ms and a
 *    round trip, then after twice that, and so on (RFC 6298 §5); those behind it arrive and wait. After {@link
 *    MAX_RETRANSMISSIONS} the connection fails.
 * 3. Up to {@link WINDOW} bytes are in flight; the rest waits.
 *
 * There is no congestion control and no fast retransmission: a loss costs more time than with a real TCP, and less
 * throughput.
 */
import type { SimulationEvent } from './event-queue.ts';
import type { Link } from './link.ts';

/** Linux: TCP_RTO_MIN, over the round trip. */
export const RETRANSMISSION = 200;
/** Linux: TCP_RTO_MAX. */
const MAX_RETRANSMISSION = 120_000;
/** Linux: net.ipv4.tcp_retries2. The sixteenth wait ends 15 to 20 minutes after the first loss. */
export const MAX_RETRANSMISSIONS = 15;
/** Bytes of a segment: roughly the payload of an Ethernet frame. */
const SEGMENT = 1400;
/** Linux: TCP_INIT_CWND. */
const LINE_SEGMENTS = 10;
/** Bytes that the kernels of both ends hold for a silent receiver. */
export const WINDOW = 256 * 1024;

/**
 * Where packets get to at present: to the peer, nowhere, or to a kernel that knows no such connection and resets it.
 */
export type Reach = 'open' | 'closed' | 'unknown';

/** Interface of a flow's surroundings. */
export interface FlowOptions {
  readonly now: () => number;
  readonly at: (time: number, run: () => void) => SimulationEvent;
  readonly link: Link;
  /** The link of the other direction, which delays acknowledgements. */
  readonly back: Link;
  readonly reach: () => Reach;
  /** Bytes that the sender's kernel accepts before they have left. */
  readonly sendBuffer: number;
  /** Whether the sender's kernel runs; otherwise nothing is sent, until {@link Flow.hurry}. */
  readonly runs: () => boolean;
  /** The peer knows no such connection, or does not answer. The flow has ended. */
  readonly failed: (why: 'reset' | 'timeout') => void;
}

interface Segment {
  readonly length: number;
  /** Set on the last segment of a send. */
  readonly arrived: (() => void) | null;
  hasArrived: boolean;
  attempts: number;
  retry: SimulationEvent | null;
}

/** One direction of a TCP connection. */
export class Flow {
  readonly #options: FlowOptions;
  /** Not yet on the line. */
  readonly #waiting: Segment[] = [];
  /** Sent but not passed on, in order. */
  readonly #underWay: Segment[] = [];
  /** Arrived while it stalls. */
  #held: Segment[] = [];
  /** Sends that are not yet taken. */
  readonly #takings: { readonly upTo: number; readonly taken: () => void }[] = [];
  /** Bytes ever sent, and those of them that have left for the wire. */
  #offered = 0;
  #gone = 0;
  #bytesUnderWay = 0;
  #onLine = 0;
  #stalls = false;
  #ended = false;

  constructor(options: FlowOptions) {
    this.#options = options;
  }

  /**
   * Sends `length` bytes.
   * @param arrived called when they and all before them have arrived
   * @param taken called when they have left for the wire, or fit into the sender's buffer; never before this returns
   */
  send(length: number, arrived: () => void, taken: () => void = () => {}): void {
    const count = Math.max(1, Math.ceil(length / SEGMENT));
    for (let i = 0; i < count; i++) {
      const isLast = i === count - 1;
      const bytes = isLast ? Math.max(1, length - i * SEGMENT) : SEGMENT;
      this.#offered += bytes;
      this.#waiting.push({
        length: bytes,
        arrived: isLast ? arrived : null,
        hasArrived: false,
        attempts: 0,
        retry: null,
      });
    }
    this.#takings.push({ upTo: this.#offered, taken });
    if (this.#options.sendBuffer > 0) this.#options.at(this.#options.now(), () => this.#take());
    this.#pump();
  }

  /** Stops departures and arrivals, without loss, until {@link resume}. */
  stall(): void {
    this.#stalls = true;
  }

  resume(): void {
    this.#stalls = false;
    const held = this.#held;
    this.#held = [];
    for (const segment of held) this.#arrive(segment);
    this.#pump();
  }

  /** Retransmits at once all segments that have not arrived. */
  hurry(): void {
    for (const segment of [...this.#underWay]) {
      if (segment.retry === null) continue;
      segment.attempts = 0;
      this.#again(segment);
    }
    this.#pump();
  }

  /** Ends the flow: nothing leaves or arrives afterwards. */
  end(): void {
    this.#ended = true;
    for (const segment of this.#underWay) this.#cancelRetry(segment);
    this.#waiting.length = 0;
    this.#takings.length = 0;
    this.#underWay.length = 0;
    this.#held = [];
  }

  #pump(): void {
    while (!this.#ended && !this.#stalls && this.#options.runs() && this.#onLine < LINE_SEGMENTS && this.#bytesUnderWay < WINDOW) {
      const segment = this.#waiting.shift();
      if (segment === undefined) return;
      this.#underWay.push(segment);
      this.#bytesUnderWay += segment.length;
      this.#onLine++;
      this.#transmit(segment);
      this.#options.at(Math.max(this.#options.now(), this.#options.link.busyUntil), () => this.#leave(segment));
    }
  }

  #leave(segment: Segment): void {
    this.#onLine--;
    this.#gone += segment.length;
    this.#take();
    this.#pump();
  }

  #take(): void {
    while (!this.#ended && this.#takings.length > 0 && this.#takings[0]!.upTo - this.#gone <= this.#options.sendBuffer)
      this.#takings.shift()!.taken();
  }

  #transmit(segment: Segment): void {
    const { now, at, link, reach } = this.#options;
    const state = reach();
    if (state === 'unknown') {
      at(now() + this.#roundTrip(), () => this.#fail('reset'));
      return;
    }
    let passes = false;
    if (state === 'open')
      link.offer(segment.length, now(), (time, damage) => {
        if (damage !== null || passes) return;
        passes = true;
        at(time, () => this.#arrive(segment));
      });
    if (!passes) this.#retryLater(segment);
  }

  #retryLater(segment: Segment): void {
    if (++segment.attempts > MAX_RETRANSMISSIONS) {
      this.#fail('timeout');
      return;
    }
    const pause = Math.min(MAX_RETRANSMISSION, (RETRANSMISSION + this.#roundTrip()) * 2 ** (segment.attempts - 1));
    segment.retry = this.#options.at(this.#options.now() + pause, () => this.#again(segment));
  }

  #again(segment: Segment): void {
    if (this.#ended || !this.#options.runs()) return;
    this.#cancelRetry(segment);
    this.#transmit(segment);
  }

  #cancelRetry(segment: Segment): void {
    if (segment.retry !== null) segment.retry.run = null;
    segment.retry = null;
  }

  #arrive(segment: Segment): void {
    if (this.#ended) return;
    if (this.#stalls) this.#held.push(segment);
    else if (this.#options.reach() !== 'open') this.#retryLater(segment);
    else this.#acknowledge(segment);
  }

  #acknowledge(segment: Segment): void {
    segment.hasArrived = true;
    while (this.#underWay[0]?.hasArrived === true) {
      const first = this.#underWay.shift()!;
      this.#bytesUnderWay -= first.length;
      first.arrived?.();
    }
    this.#pump();
  }

  #fail(why: 'reset' | 'timeout'): void {
    if (this.#ended) return;
    this.end();
    this.#options.failed(why);
  }

  #roundTrip(): number {
    return this.#options.link.options.delay + this.#options.back.options.delay;
  }
}
