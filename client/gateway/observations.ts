/**
 * Observations of the device's resources for CoAP tools (RFC 7641): passes the device's notifications to the tools.
 *
 * 1. Each observation of a tool is one observation at the device, identified by the tool's address and token.
 * 2. Notifications are confirmable if the request was; of non-confirmable ones every eighth, to detect tools that are
 *    gone (§4.5). While one waits for its acknowledgement, only the newest state waits behind it (§4.5.2).
 * 3. A reset, a missing acknowledgement, a GET with Observe 1, or an answer other than 2.xx ends it.
 * 4. It survives the connection: the next one observes the resource again, and its state is sent as a notification.
 */
import type { CoapReply } from '../../protocol/coap/index.ts';
import type {
  BlockTransfers,
  DatagramRequest,
  Delivery,
  MessageLayer,
  MessageLayerEvent,
  SentMessage,
  WholeRequest,
} from '../../protocol/coap-udp/index.ts';
import { asSvcError, type SvcError } from '../../protocol/errors/index.ts';
import type { Subscription } from '../../runtime/subscription.ts';
import type { Connection } from '../connection.ts';
import type { Answer } from '../requests.ts';
import { errorReply, responseReply } from './replies.ts';
import type { DeviceRequest } from './request.ts';

export interface ObservationsOptions {
  readonly layer: MessageLayer;
  readonly transfers: BlockTransfers;
  readonly now: () => number;
  /** Called when the message layer has something to send. */
  readonly onSent: () => void;
  /** Answers the request that began an observation, which frees its request slot. */
  readonly answer: (observer: Observer, reply: CoapReply, sequence?: number) => void;
  /** Drops the request that began an observation unanswered: a later one with the same token is answered instead. */
  readonly drop: (observer: Observer) => void;
}

/** A tool that observes. */
export interface Observer {
  readonly datagram: DatagramRequest;
  readonly whole: WholeRequest;
  readonly request: DeviceRequest;
}

/** The number that a device keeps for one connection. */
export const MAX_OBSERVATIONS = 32;
const CONFIRMABLE_EVERY = 8;

/** Errors of an observation whose connection was lost. */
const LOST: readonly string[] = ['STOPPED', 'NOT_CONNECTED'];

interface Entry extends Observer {
  readonly key: string;
  /** The observation at the device; null while there is no connection. */
  observation: Subscription<Answer> | null;
  answered: boolean;
  sequence: number;
  ended: boolean;
  /** The confirmable notification under way. */
  underWay: SentMessage | null;
  /** The notification after it. */
  next: { readonly reply: CoapReply; readonly final: boolean } | null;
}

export class Observations {
  readonly #options: ObservationsOptions;
  readonly #entries = new Map<string, Entry>();
  /** The entry that a notification belongs to. */
  readonly #notified = new WeakMap<SentMessage, Entry>();

  constructor(options: ObservationsOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#entries.size;
  }

  /**
   * Registers an observer, or renews its registration (§4.1).
   * @returns the function that gives up unanswered; null at the limit: the request is then a plain GET
   */
  register(observer: Observer, connection: Connection): (() => void) | null {
    const key = keyOf(observer);
    const before = this.#entries.get(key);
    if (before !== undefined) this.#replace(before);
    if (this.#entries.size >= MAX_OBSERVATIONS) return null;
    const sequence = before?.sequence ?? 0;
    const entry: Entry = { ...observer, key, observation: null, answered: false, sequence, ended: false, underWay: null, next: null };
    this.#entries.set(key, entry);
    this.#observe(entry, connection);
    return () => this.#end(entry);
  }

  /** Handles a GET with Observe 1. */
  cancel(observer: Observer): void {
    const entry = this.#entries.get(keyOf(observer));
    if (entry !== undefined) this.#replace(entry);
  }

  /** Observes again over a new connection. */
  resume(connection: Connection): void {
    for (const entry of [...this.#entries.values()]) if (entry.observation === null) this.#observe(entry, connection);
  }

  /** Handles the delivery or loss of a notification. */
  delivered({ sent, delivery }: Extract<MessageLayerEvent, { kind: 'delivery' }>): void {
    const entry = this.#notified.get(sent);
    if (entry !== undefined && !entry.ended) this.#delivered(entry, delivery);
  }

  /** Ends all observations without notifying the tools. */
  close(): void {
    for (const entry of [...this.#entries.values()]) this.#end(entry);
  }

  #observe(entry: Entry, connection: Connection): void {
    try {
      const { path, query } = entry.request;
      entry.observation = connection.observe(path, { query });
      void this.#follow(entry, entry.observation);
    } catch (error) {
      // The connection has just ended, and its event is still to come.
      this.#observationEnded(entry, asSvcError(error));
    }
  }

  async #follow(entry: Entry, observation: Subscription<Answer>): Promise<void> {
    try {
      for await (const answer of observation) this.#answered(entry, answer);
      this.#observationEnded(entry, null);
    } catch (error) {
      this.#observationEnded(entry, asSvcError(error));
    }
  }

  #answered(entry: Entry, answer: Answer): void {
    if (entry.ended) return;
    const reply = responseReply(answer, entry.request.accept);
    const final = answer.sequence === undefined || reply.status >= 300;
    if (entry.answered) {
      this.#notify(entry, reply, final);
      return;
    }
    entry.answered = true;
    this.#options.answer(entry, reply, final ? undefined : entry.sequence);
    if (final) this.#end(entry);
  }

  /**
   * Handles the end of an observation. `error` is null after a last response, which has been handled. After a lost
   * connection, `resume` continues those already answered.
   */
  #observationEnded(entry: Entry, error: SvcError | null): void {
    entry.observation = null;
    if (entry.ended || error === null) return;
    if (!entry.answered) {
      entry.answered = true;
      this.#options.answer(entry, errorReply(error));
      this.#end(entry);
    } else if (!LOST.includes(error.code)) {
      this.#notify(entry, errorReply(error), true);
    }
  }

  #notify(entry: Entry, reply: CoapReply, final: boolean): void {
    if (entry.underWay !== null) {
      entry.next = { reply, final };
      return;
    }
    const { layer, transfers, now, onSent } = this.#options;
    entry.sequence = (entry.sequence + 1) & 0xffffff;
    const message = transfers.reply(entry.whole, reply, now(), final ? undefined : entry.sequence);
    const confirmable = entry.datagram.confirmable || final || entry.sequence % CONFIRMABLE_EVERY === 0;
    const isLast = final || message.code >> 5 !== 2;
    if (isLast) this.#end(entry);
    const sent = layer.send(entry.datagram.peer, message, { confirmable, reported: !isLast }, now());
    if (!isLast) this.#notified.set(sent, entry);
    if (confirmable && !isLast) entry.underWay = sent;
    onSent();
  }

  #delivered(entry: Entry, delivery: Delivery): void {
    if (delivery !== 'acknowledged') {
      this.#end(entry);
      return;
    }
    const { next } = entry;
    entry.underWay = null;
    entry.next = null;
    if (next !== null) this.#notify(entry, next.reply, next.final);
  }

  /** Ends the entry and drops its request: a late answer to it would look like one to the request that replaces it. */
  #replace(entry: Entry): void {
    this.#end(entry);
    this.#options.drop(entry);
  }

  #end(entry: Entry): void {
    entry.ended = true;
    if (entry.underWay !== null) this.#options.layer.cancel(entry.underWay);
    void entry.observation?.close();
    if (this.#entries.get(entry.key) === entry) this.#entries.delete(entry.key);
  }
}

function keyOf({ datagram }: Observer): string {
  return `${datagram.peer.key} ${datagram.message.token.join('.')}`;
}
