/**
 * The datagrams of one session, sorted by flow (PROTOCOL.md §12). A flow is bound to a byte stream and ends with it:
 * its opener closes it then.
 *
 * A datagram may overtake the opening of its stream, or arrive while the application is still deciding whether to
 * accept it. So the last `MOST_EARLY` unclaimed datagrams are kept until their flow is opened, for at least 5 s (two
 * sweeps of the session). Those whose stream is refused or over are simply dropped.
 */
import { decodeFlowDatagram, encodeFlowDatagram, type FlowDatagram, flowOf } from '../../protocol/datagrams/index.ts';

/** Our constant: unclaimed datagrams kept for a session; the oldest is dropped first. */
const MOST_EARLY = 32;

/**
 * Length that always fits into a packet, on a route too, flow number included (PROTOCOL.md §12). If a datagram of at
 * most this length is not taken, memory is short.
 */
export const SURE_LENGTH = 1_159;

/** Counters of one flow, or of several. */
export interface DatagramCounts {
  /** Passed to the connection, which drops the oldest when it may not send that many. */
  sent: number;
  received: number;
  /** Too long for a packet of the connection. */
  tooLong: number;
  /** Dropped here for lack of room, or because the flow was refused or is over. */
  dropped: number;
}

/** Datagrams of one stream. */
export interface DatagramFlow {
  /** Sends one datagram, unreliable and unordered. The caller may reuse the bytes afterwards. */
  send(payload: Uint8Array): void;
  /** Stops receiving. */
  close(): void;
}

export class DatagramFlows {
  readonly #send: (datagram: Uint8Array) => boolean;
  readonly #open = new Map<number, (payload: Uint8Array) => void>();
  /** Unclaimed datagrams since the last sweep, and before it. */
  #early: FlowDatagram[] = [];
  #older: FlowDatagram[] = [];
  #unclaimed = 0;

  /** @param send passes a datagram to the connection; returns false when it was not taken */
  constructor(send: (datagram: Uint8Array) => boolean) {
    this.#send = send;
  }

  /** Datagrams that belonged to no flow, or came too early for one. */
  get unclaimed(): number {
    return this.#unclaimed;
  }

  /**
   * Opens the flow of a stream that has its id. Earlier datagrams are passed to `receive` at once.
   * @param counts updated by the flow
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

  /** Receives a datagram of the session. */
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

  /** Drops datagrams that no flow claimed since the last sweep. @returns false when some are left: call again */
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
