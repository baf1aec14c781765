/**
 * The datagrams of one session, sorted by flow (PROTOCOL.md §12). A flow is bound to a byte stream and ends with it:
 * its opener closes it then.
 *
 * A datagram that fits no packet is sent in parts, if the peer announced that it puts them together; all of them or
 * none: one that lacks a part is lost, and its other parts would only take the room of others.
 *
 * A datagram may overtake the opening of its stream, or arrive while the application is still deciding whether to
 * accept it. So the last `MAX_EARLY` unclaimed datagrams are kept until their flow is opened, for at least 5 s (two
 * sweeps of the session). Those whose stream is refused or over are simply dropped.
 */
import type { Connection } from '../../protocol/connection/index.ts';
import {
  cutFlowDatagram,
  decodeFlowDatagram,
  decodeFlowPart,
  encodeFlowDatagram,
  encodeFlowPart,
  type FlowDatagram,
  flowOf,
  MAX_PARTS,
  PartSets,
} from '../../protocol/datagrams/index.ts';
import { type SessionOwner, unlessOver } from './owner.ts';

/** Our constants: unclaimed datagrams kept for a session, and their bytes; the oldest is dropped first. */
export const MAX_EARLY = 32;
export const MAX_EARLY_BYTES = 256 * 1024;

/**
 * Length that always fits into a packet, on a route too, flow number included (PROTOCOL.md §12). If a datagram of at
 * most this length is not taken, memory is short.
 */
export const SURE_LENGTH = 1_159;

/** Counters of one flow, or of several. */
export interface DatagramCounts {
  /** Passed to the connection. */
  sent: number;
  received: number;
  /** Too long for the peer, or for a packet where the peer takes no parts. */
  tooLong: number;
  /** Dropped here for lack of room, or because the flow was refused or is over. */
  dropped: number;
  /** Arrived only in part. */
  incomplete: number;
}

/** Datagrams of one stream. */
export interface DatagramFlow {
  /** Sends one datagram, unreliable and unordered. The caller may reuse the bytes afterwards. */
  send(payload: Uint8Array): void;
  /** Stops receiving. */
  close(): void;
}

/** The part of a session that its datagrams use. */
export interface DatagramsOwner extends Pick<SessionOwner, 'clock' | 'whileOpen'> {
  readonly connection: Pick<Connection, 'stats'> & {
    readonly peer: Pick<Connection['peer'], 'flowParts'>;
    readonly messages: Pick<Connection['messages'], 'datagramSize' | 'datagramRoom' | 'sendDatagram'>;
  };
}

interface OpenFlow {
  readonly receive: (payload: Uint8Array) => void;
  readonly counts: DatagramCounts;
}

export class SessionDatagrams {
  readonly #owner: DatagramsOwner;
  readonly #open = new Map<number, OpenFlow>();
  readonly #sets: PartSets;
  /** Number of the last datagram that was sent in parts. */
  #number = 0;
  /** Unclaimed datagrams since the last sweep, and before it. */
  #early: FlowDatagram[] = [];
  #older: FlowDatagram[] = [];
  #unclaimed = 0;
  #lost = 0;

  constructor(owner: DatagramsOwner) {
    this.#owner = owner;
    this.#sets = new PartSets((flow) => this.#givenUp(flow));
  }

  /** Datagrams that belonged to no flow, or came too early for one. */
  get unclaimed(): number {
    return this.#unclaimed;
  }

  /** Our datagrams, and parts of them, in packets that were lost on the way; of all flows, since the session began. */
  get lost(): number {
    const stats = this.#owner.whileOpen(() => this.#owner.connection.stats(), null);
    this.#lost = stats?.datagramsLost ?? this.#lost;
    return this.#lost;
  }

  /** The session ends: `lost` keeps its last value. */
  end(): void {
    void this.lost;
  }

  /**
   * Sends a datagram of no flow, unreliable and unordered.
   * @returns false when not taken: too long, queue full, session over
   */
  send(content: Uint8Array): boolean {
    try {
      return this.#owner.connection.messages.sendDatagram(content);
    } catch (error) {
      return unlessOver(error, false);
    }
  }

  /**
   * Opens the flow of a stream that has its id. Earlier datagrams are passed to `receive` at once.
   * @param counts updated by the flow
   */
  open(streamId: number, receive: (payload: Uint8Array) => void, counts: DatagramCounts): DatagramFlow {
    const flow = flowOf(streamId);
    const open = { receive, counts };
    this.#open.set(flow, open);
    for (const { payload } of this.#takeEarly(flow)) deliver(open, payload);
    return { send: (payload) => this.#pass(flow, payload, counts), close: () => void this.#open.delete(flow) };
  }

  /** Receives a datagram of the session: the content of a frame, which is kept. */
  receive(content: Uint8Array): void {
    if (this.#owner.connection.peer.flowParts === 0) {
      this.#receiveWhole(decodeFlowDatagram(content));
      return;
    }
    const part = decodeFlowPart(content, MAX_PARTS);
    if (part === null || part.number === 0) {
      this.#receiveWhole(part);
      return;
    }
    const whole = this.#sets.receive(part, this.#owner.clock.now());
    if (whole !== null) this.#receiveWhole(whole);
  }

  /**
   * Drops datagrams that no flow claimed since the last sweep, and incomplete ones that are too old.
   * @returns false when some are left: call again
   */
  sweep(): boolean {
    this.#sets.expire(this.#owner.clock.now());
    this.#unclaimed += this.#older.length;
    this.#older = this.#early;
    this.#early = [];
    return this.#older.length === 0 && this.#sets.size === 0;
  }

  #receiveWhole(datagram: FlowDatagram | null): void {
    const open = datagram === null ? undefined : this.#open.get(datagram.flow);
    if (datagram === null) this.#unclaimed++;
    else if (open !== undefined) deliver(open, datagram.payload);
    else this.#keep(datagram);
  }

  #givenUp(flow: number): void {
    const open = this.#open.get(flow);
    if (open === undefined) this.#unclaimed++;
    else open.counts.incomplete++;
  }

  #keep(datagram: FlowDatagram): void {
    this.#early.push(datagram);
    const all = [...this.#older, ...this.#early];
    let bytes = all.reduce((sum, { payload }) => sum + payload.length, 0);
    for (let left = all.length; left > MAX_EARLY || bytes > MAX_EARLY_BYTES; left--) {
      bytes -= (this.#older.length > 0 ? this.#older : this.#early).shift()!.payload.length;
      this.#unclaimed++;
    }
  }

  #pass(flow: number, payload: Uint8Array, counts: DatagramCounts): void {
    const { connection } = this.#owner;
    const { flowParts } = connection.peer;
    const whole = flowParts === 0 ? encodeFlowDatagram(flow, payload) : encodeFlowPart({ flow, number: 0, index: 0, count: 1, payload });
    if (whole.length <= SURE_LENGTH || whole.length <= this.#owner.whileOpen(() => connection.messages.datagramSize, -1)) {
      if (this.send(whole)) counts.sent++;
      else counts.dropped++;
    } else this.#passParts({ flow, payload }, counts);
  }

  #passParts(datagram: FlowDatagram, counts: DatagramCounts): void {
    const { connection } = this.#owner;
    const parts = cutFlowDatagram(datagram, { number: ++this.#number, size: SURE_LENGTH, most: connection.peer.flowParts });
    const room = this.#owner.whileOpen(() => connection.messages.datagramRoom, 0);
    if (parts === null) counts.tooLong++;
    else if (room >= parts.length && parts.every((part) => this.send(part))) counts.sent++;
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
  return { sent: 0, received: 0, tooLong: 0, dropped: 0, incomplete: 0 };
}

function deliver({ receive, counts }: OpenFlow, payload: Uint8Array): void {
  counts.received++;
  receive(payload);
}
