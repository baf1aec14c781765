/**
 * The datagrams of one session, each for the flow it belongs to (PROTOCOL.md §12). A flow is bound to a byte stream, and is over when that is:
 * whoever opened it closes it then.
 *
 * A datagram may overtake the opening of its stream, or come while the stream is being decided on. So the last `MOST_EARLY` that nobody claims
 * are kept until their flow is opened, 5 s at least (two rests of the session); which of them are in vain (their stream is refused, or
 * over) nobody needs to know.
 */
import { decodeFlowDatagram, encodeFlowDatagram, type FlowDatagram, flowOf } from '../../protocol/datagrams/index.ts';

/** Our constant: unclaimed datagrams kept for a session, the oldest is dropped first. */
const MOST_EARLY = 32;

/**
 * What surely fits into a packet, on a route too, number of the flow included (PROTOCOL.md §12). One of this length or less that was not taken found
 * no memory.
 */
export const SURE_LENGTH = 1_159;

/** What became of the datagrams of one flow, or of several. */
export interface DatagramCounts {
  /** Handed to the connection, which drops the oldest when it is not allowed to send so many. */
  sent: number;
  received: number;
  /** Too long for a packet of the connection. */
  tooLong: number;
  /** Dropped here for want of room, or because the flow was refused or is over. */
  dropped: number;
}

/** Datagrams of one stream. */
export interface DatagramFlow {
  /** Unreliable and unordered. The bytes may be used again afterwards. */
  send(payload: Uint8Array): void;
  /** Nothing is received any more. */
  close(): void;
}

export class DatagramFlows {
  readonly #send: (datagram: Uint8Array) => boolean;
  readonly #open = new Map<number, (payload: Uint8Array) => void>();
  /** Unclaimed: since the last rest, and before it. */
  #early: FlowDatagram[] = [];
  #older: FlowDatagram[] = [];
  #unclaimed = 0;

  /** @param send hands a datagram to the connection; false when that does not take it */
  constructor(send: (datagram: Uint8Array) => boolean) {
    this.#send = send;
  }

  /** Datagrams that were no flow's, or not in time. */
  get unclaimed(): number {
    return this.#unclaimed;
  }

  /**
   * The flow of a stream that has its id. What came for it before is handed to `receive` at once.
   * @param counts are kept up to date
   */
  open(streamId: number, receive: (payload: Uint8Array) => void, counts: DatagramCounts): DatagramFlow {
    const flow = flowOf(streamId);
    const take = (payload: Uint8Array): void => {
      counts.received++;
      receive(payload);
    };
    this.#open.set(flow, take);
    for (const { payload } of this.#takeEarly(flow)) take(payload);
    return { send: (payload) => this.#pass(flow, payload, counts), close: () => void this.#open.delete(flow) };
  }

  /** A datagram arrived. */
  receive(datagram: Uint8Array): void {
    const decoded = decodeFlowDatagram(datagram);
    if (decoded === null) {
      this.#unclaimed++;
      return;
    }
    const take = this.#open.get(decoded.flow);
    if (take !== undefined) take(decoded.payload);
    else this.#keep(decoded);
  }

  /** Lets go of what nobody claimed since the last time. @returns false when something is left: ask again */
  sweep(): boolean {
    this.#unclaimed += this.#older.length;
    this.#older = this.#early;
    this.#early = [];
    return this.#older.length === 0;
  }

  #keep(datagram: FlowDatagram): void {
    this.#early.push(datagram);
    if (this.#early.length + this.#older.length <= MOST_EARLY) return;
    (this.#older.length > 0 ? this.#older : this.#early).shift();
    this.#unclaimed++;
  }

  #pass(flow: number, payload: Uint8Array, counts: DatagramCounts): void {
    const datagram = encodeFlowDatagram(flow, payload);
    if (this.#send(datagram)) counts.sent++;
    else if (datagram.length > SURE_LENGTH) counts.tooLong++;
    else counts.dropped++;
  }

  #takeEarly(flow: number): FlowDatagram[] {
    const ours = (datagram: FlowDatagram): boolean => datagram.flow === flow;
    const taken = [...this.#older, ...this.#early].filter(ours);
    if (taken.length === 0) return taken;
    this.#older = this.#older.filter((datagram) => !ours(datagram));
    this.#early = this.#early.filter((datagram) => !ours(datagram));
    return taken;
  }
}

export function noDatagrams(): DatagramCounts {
  return { sent: 0, received: 0, tooLong: 0, dropped: 0 };
}
