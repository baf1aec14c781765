/**
 * The message layer of a CoAP server over UDP (RFC 7252 §4): duplicates, acknowledgements, retransmission. Sans-IO, and
 * for incoming requests only: it sends none.
 *
 *   request ── answered within 0.5 s ──▶ the answer acknowledges (CON)
 *           └─ later ──▶ empty ACK ──▶ the answer is a separate CON, repeated until acknowledged, reset or sent 5 times
 *
 * 1. A request whose message id came from the same peer within the lifetime of an exchange is a duplicate. It gets the
 *    same answer, or the answer that is in progress, and is not delivered twice.
 * 2. A message that cannot be processed is reset if it was confirmable, else ignored; an empty confirmable message is a
 *    ping (§4.3).
 * 3. A non-confirmable request that the caller cannot process is rejected with a reset (§4.3): silence would mean the
 *    same, only later.
 * 4. Everything is bounded: remembered requests, and messages that wait for an acknowledgement. The oldest are dropped
 *    first.
 *
 * After `receive`, `respond`, `reject`, `send` and `handleTimeout`: `nextEvent` until null, `transmit` until null, then
 * `nextTimeout`. `now` is monotonic milliseconds.
 */
import { codeKind } from '../coap/codes.ts';
import type { CoapMessage } from '../coap/message.ts';
import { Fifo } from '../fifo.ts';
import type { Path } from '../path.ts';
import { decodeDatagram, encodeDatagram, encodeEmpty, MessageType } from './message.ts';

/** A request as received, with the peer to answer. */
export interface DatagramRequest extends SentMessage {
  readonly confirmable: boolean;
  readonly message: CoapMessage;
}

/** One datagram for a peer. */
export interface OutgoingDatagram {
  readonly peer: Path;
  readonly bytes: Uint8Array;
}

/** A separate message, as `send` sent it. */
export interface SentMessage {
  readonly peer: Path;
  readonly id: number;
}

/** The fate of a message that was sent: a CON ends with one of the three, a NON at most with `reset`. */
export type Delivery = 'acknowledged' | 'reset' | 'unanswered';

export type MessageLayerEvent =
  /** A request that is not a duplicate. Answer it with `respond`, now or later, or `reject` it. */
  | { readonly kind: 'request'; readonly request: DatagramRequest }
  /** The end of a message whose delivery is to be reported; at most once. */
  | { readonly kind: 'delivery'; readonly sent: SentMessage; readonly delivery: Delivery };

/** RFC 7252 §4.8, ms. */
const ACK_TIMEOUT = 2000;
const ACK_RANDOM_FACTOR = 1.5;
export const MAX_RETRANSMIT = 4;
export const EXCHANGE_LIFETIME = 247_000;
const NON_LIFETIME = 145_000;

/**
 * Our constant, ms, below ACK_TIMEOUT: an answer that takes longer is sent separately, so that the peer does not repeat
 * its request.
 */
const ACK_DELAY = 500;
/** Limits of remembered requests, and of messages that wait for an acknowledgement or a reset. */
export const MAX_REMEMBERED = 4096;
export const MAX_OUTGOING = 1024;

interface RequestEntry extends SentMessage {
  /** Kept until it is answered: its content may be long and is not needed afterwards. */
  request: DatagramRequest | null;
  readonly at: number;
  /** When an empty ACK is due; Infinity when none is. */
  acknowledgeAt: number;
  acknowledged: boolean;
  /** The piggybacked answer. */
  answer: Uint8Array | undefined;
}

interface OutgoingMessage extends SentMessage, OutgoingDatagram {
  readonly confirmable: boolean;
  /** Its delivery is reported as an event. */
  readonly reported: boolean;
  /** Number of retransmissions left. */
  left: number;
  timeout: number;
  at: number;
}

/** The message layer of one socket. */
export class MessageLayer {
  readonly #random: () => number;
  readonly #datagrams = new Fifo<OutgoingDatagram>();
  readonly #events = new Fifo<MessageLayerEvent>();
  readonly #remembered = new Map<string, RequestEntry>();
  /** The remembered requests that are not acknowledged yet. */
  readonly #open = new Set<RequestEntry>();
  readonly #outgoing = new Map<string, OutgoingMessage>();
  #nextId: number;

  /** @param random uniform in [0, 1) */
  constructor(random: () => number) {
    this.#random = random;
    this.#nextId = Math.floor(random() * 0x10000);
  }

  /** Processes a datagram from the network. It changes and keeps the bytes. Never throws. */
  receive(bytes: Uint8Array, peer: Path, now: number): void {
    const datagram = decodeDatagram(bytes);
    if (datagram === undefined) return;
    const { type, id, message } = datagram;
    if (type === MessageType.ACKNOWLEDGEMENT || type === MessageType.RESET) {
      // An acknowledgement with a response answers a request, and this layer sends none.
      if (message?.code === 0) this.#delivered(keyOf({ peer, id }), type === MessageType.RESET ? 'reset' : 'acknowledged');
      return;
    }
    const confirmable = type === MessageType.CONFIRMABLE;
    if (message !== undefined && codeKind(message.code) === 'request') this.#request({ peer, id, confirmable, message }, now);
    else if (confirmable) this.#push(encodeEmpty(MessageType.RESET, id), peer);
  }

  /** Answers a request, once. */
  respond(request: DatagramRequest, response: CoapMessage, now: number): void {
    const remembered = this.#remembered.get(keyOf(request));
    const known = remembered?.request === request ? remembered : undefined;
    const piggybacked = request.confirmable && known?.acknowledged === false;
    if (known !== undefined) known.request = null;
    if (known === undefined || !piggybacked) {
      this.send(request.peer, response, { confirmable: request.confirmable }, now);
      return;
    }
    known.answer = encodeDatagram(MessageType.ACKNOWLEDGEMENT, request.id, response);
    this.#acknowledged(known);
    this.#push(known.answer, request.peer);
  }

  /** Rejects a non-confirmable request instead of answering it. A duplicate of it is ignored. */
  reject(request: DatagramRequest): void {
    const remembered = this.#remembered.get(keyOf(request));
    if (remembered?.request === request) remembered.request = null;
    this.#push(encodeEmpty(MessageType.RESET, request.id), request.peer);
  }

  /**
   * Sends a separate message: a separate response or a notification.
   * @param reported whether its delivery is reported as an event
   */
  send(
    peer: Path,
    message: CoapMessage,
    { confirmable, reported = false }: { readonly confirmable: boolean; readonly reported?: boolean },
    now: number,
  ): SentMessage {
    const id = this.#freshId(peer);
    const bytes = encodeDatagram(confirmable ? MessageType.CONFIRMABLE : MessageType.NON_CONFIRMABLE, id, message);
    this.#push(bytes, peer);
    // The caller ignores a reset of it: it takes no slot of those that wait.
    if (!confirmable && !reported) return { peer, id };
    const timeout = confirmable ? ACK_TIMEOUT * (1 + (ACK_RANDOM_FACTOR - 1) * this.#random()) : NON_LIFETIME;
    const outgoing = { peer, id, bytes, confirmable, reported, left: confirmable ? MAX_RETRANSMIT : 0, timeout, at: now + timeout };
    const oldest = this.#outgoing.keys().next().value;
    if (this.#outgoing.size >= MAX_OUTGOING && oldest !== undefined) this.#delivered(oldest, 'unanswered');
    this.#outgoing.set(keyOf(outgoing), outgoing);
    return outgoing;
  }

  /** Cancels a message: it is not repeated, and its delivery is not reported. */
  cancel(sent: SentMessage): void {
    const key = keyOf(sent);
    if (this.#outgoing.get(key) === sent) this.#outgoing.delete(key);
  }

  /** Returns the next datagram to send, null when none waits. */
  transmit(): OutgoingDatagram | null {
    return this.#datagrams.shift() ?? null;
  }

  /** Returns the next event, null when none waits. */
  nextEvent(): MessageLayerEvent | null {
    return this.#events.shift() ?? null;
  }

  /** Returns when to call `handleTimeout`, ms; Infinity for never. */
  nextTimeout(): number {
    let earliest = Number.POSITIVE_INFINITY;
    for (const { acknowledgeAt } of this.#open) earliest = Math.min(earliest, acknowledgeAt);
    for (const { at } of this.#outgoing.values()) earliest = Math.min(earliest, at);
    return earliest;
  }

  /** Acknowledges requests that are not answered yet, and repeats or abandons messages that are not acknowledged. */
  handleTimeout(now: number): void {
    for (const remembered of this.#open) {
      if (remembered.acknowledgeAt > now) continue;
      this.#acknowledged(remembered);
      this.#push(encodeEmpty(MessageType.ACKNOWLEDGEMENT, remembered.id), remembered.peer);
    }
    for (const outgoing of [...this.#outgoing.values()]) if (outgoing.at <= now) this.#repeat(outgoing, now);
  }

  #request(request: DatagramRequest, now: number): void {
    this.#forgetOld(now);
    const key = keyOf(request);
    const before = this.#remembered.get(key);
    if (before !== undefined) {
      if (request.confirmable) this.#repeatAnswer(before);
      return;
    }
    const acknowledgeAt = request.confirmable ? now + ACK_DELAY : Number.POSITIVE_INFINITY;
    const { peer, id } = request;
    const remembered: RequestEntry = { peer, id, request, at: now, acknowledgeAt, acknowledged: false, answer: undefined };
    this.#remembered.set(key, remembered);
    if (request.confirmable) this.#open.add(remembered);
    this.#events.push({ kind: 'request', request });
  }

  #repeatAnswer({ peer, id, answer, acknowledged }: RequestEntry): void {
    if (answer !== undefined) this.#push(answer, peer);
    else if (acknowledged) this.#push(encodeEmpty(MessageType.ACKNOWLEDGEMENT, id), peer);
  }

  #acknowledged(remembered: RequestEntry): void {
    remembered.acknowledged = true;
    this.#open.delete(remembered);
  }

  #forgetOld(now: number): void {
    for (const [key, remembered] of this.#remembered) {
      if (now - remembered.at < EXCHANGE_LIFETIME && this.#remembered.size < MAX_REMEMBERED) return;
      this.#remembered.delete(key);
      this.#open.delete(remembered);
    }
  }

  #repeat(outgoing: OutgoingMessage, now: number): void {
    if (outgoing.left === 0) {
      this.#delivered(keyOf(outgoing), 'unanswered');
      return;
    }
    outgoing.left--;
    outgoing.timeout *= 2;
    outgoing.at = now + outgoing.timeout;
    this.#push(outgoing.bytes, outgoing.peer);
  }

  #delivered(key: string, delivery: Delivery): void {
    const sent = this.#outgoing.get(key);
    if (sent === undefined) return;
    this.#outgoing.delete(key);
    // A NON is never acknowledged, so its expiry means nothing.
    if (sent.reported && (sent.confirmable || delivery === 'reset')) this.#events.push({ kind: 'delivery', sent, delivery });
  }

  #push(bytes: Uint8Array, peer: Path): void {
    this.#datagrams.push({ peer, bytes });
  }

  #freshId(peer: Path): number {
    // There are far fewer messages in flight than ids.
    do this.#nextId = (this.#nextId + 1) & 0xffff;
    while (this.#outgoing.has(keyOf({ peer, id: this.#nextId })));
    return this.#nextId;
  }
}

function keyOf({ peer, id }: SentMessage): string {
  return `${peer.key} ${id}`;
}
