/** Two ends of a channel for whole messages, in virtual time. It keeps their order, or draws one from a seed. */
import { type CoapReply, Exchanges, type ExchangesEvent, type ExchangesOptions } from '../../../protocol/coap/index.ts';
import { MAX_MESSAGE } from '../../../protocol/coap/message.ts';

type End = 'client' | 'server';

/** A small seeded generator (xorshift32). */
export function seededRandom(seed: number): (below: number) => number {
  let state = seed | 0 || 1;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}

export function randomBytes(random: (below: number) => number, length: number): Uint8Array {
  return Uint8Array.from({ length }, () => random(256));
}

export class Pair {
  now = 0;
  readonly client: Exchanges;
  readonly server: Exchanges;
  /** Messages in flight. */
  readonly wire: { readonly to: End; readonly bytes: Uint8Array }[] = [];
  /** Every message sent, to inspect the bytes. */
  readonly log: { readonly to: End; readonly bytes: Uint8Array }[] = [];
  readonly #random: ((below: number) => number) | undefined;

  /** @param seed of the order of delivery; undefined keeps the order */
  constructor(options: Partial<ExchangesOptions> = {}, seed?: number) {
    const tokens = seededRandom(seed ?? 4711);
    const randomToken = (length: number): Uint8Array => randomBytes(tokens, length);
    this.client = new Exchanges({ randomToken, ...options });
    this.server = new Exchanges({ randomToken, ...options });
    this.#random = seed === undefined ? undefined : seededRandom(seed);
  }

  /** Puts waiting messages in flight. */
  collect(): void {
    for (const [from, to] of [
      [this.client, 'server'],
      [this.server, 'client'],
    ] as const) {
      for (let bytes = from.transmit(); bytes !== null; bytes = from.transmit()) {
        if (bytes.length > MAX_MESSAGE) throw new Error(`a message of ${bytes.length} bytes`);
        this.wire.push({ to, bytes });
        this.log.push({ to, bytes });
      }
    }
  }

  /** Delivers one message. Returns false when there is none. */
  step(): boolean {
    this.collect();
    if (this.wire.length === 0) return false;
    const [message] = this.wire.splice(this.#random?.(this.wire.length) ?? 0, 1);
    (message!.to === 'client' ? this.client : this.server).receive(message!.bytes.slice(), this.now);
    return true;
  }

  /** Delivers until nothing is left. `answer` gets every event of the server. */
  run(answer: (event: ExchangesEvent) => void = () => {}): ExchangesEvent[] {
    const seen: ExchangesEvent[] = [];
    do {
      for (let event = this.server.nextEvent(); event !== null; event = this.server.nextEvent()) answer(event);
      for (let event = this.client.nextEvent(); event !== null; event = this.client.nextEvent()) seen.push(event);
    } while (this.step() || this.#pending());
    return seen;
  }

  /** Advances the clock and handles the timeouts of both ends. */
  advance(milliseconds: number): void {
    this.now += milliseconds;
    this.client.handleTimeout(this.now);
    this.server.handleTimeout(this.now);
  }

  #pending(): boolean {
    this.collect();
    return this.wire.length > 0;
  }
}

/** A callback for `run` that answers every request with `reply`. */
export const answering =
  (pair: Pair, reply: (event: Extract<ExchangesEvent, { kind: 'request' }>) => CoapReply) =>
  (event: ExchangesEvent): void => {
    if (event.kind === 'request') pair.server.responder.respond(event.exchange, reply(event), pair.now);
  };

/** A single end: tests inspect what it sends and make up what it receives. */
export const lone = (): Exchanges => new Exchanges({ randomToken: (length) => new Uint8Array(length).fill(9) });
