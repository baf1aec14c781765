/** Two ends of one channel that carries whole messages, in order or in an order drawn from a seed, in virtual time. */
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
  /** Messages on the way. */
  readonly wire: { readonly to: End; readonly bytes: Uint8Array }[] = [];
  /** Every message ever sent, for a look at the bytes. */
  readonly log: { readonly to: End; readonly bytes: Uint8Array }[] = [];
  readonly #random: ((below: number) => number) | undefined;

  /** @param seed draws the order of delivery; undefined keeps it */
  constructor(options: Partial<ExchangesOptions> = {}, seed?: number) {
    const tokens = seededRandom(seed ?? 4711);
    const randomToken = (length: number): Uint8Array => randomBytes(tokens, length);
    this.client = new Exchanges({ randomToken, ...options });
    this.server = new Exchanges({ randomToken, ...options });
    this.#random = seed === undefined ? undefined : seededRandom(seed);
  }

  /** Moves waiting messages onto the wire. */
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

  /** Delivers one message; false when there is none. */
  step(): boolean {
    this.collect();
    if (this.wire.length === 0) return false;
    const [message] = this.wire.splice(this.#random?.(this.wire.length) ?? 0, 1);
    (message!.to === 'client' ? this.client : this.server).receive(message!.bytes.slice(), this.now);
    return true;
  }

  /** Delivers until nothing is left; `answer` gets every event of the server side. */
  run(answer: (event: ExchangesEvent) => void = () => {}): ExchangesEvent[] {
    const seen: ExchangesEvent[] = [];
    do {
      for (let event = this.server.nextEvent(); event !== null; event = this.server.nextEvent()) answer(event);
      for (let event = this.client.nextEvent(); event !== null; event = this.client.nextEvent()) seen.push(event);
    } while (this.step() || this.#pending());
    return seen;
  }

  /** Advances the clock and lets both ends look at it. */
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

/** For `run`: answers every request with `reply`. */
export const answering =
  (pair: Pair, reply: (event: Extract<ExchangesEvent, { kind: 'request' }>) => CoapReply) =>
  (event: ExchangesEvent): void => {
    if (event.kind === 'request') pair.server.respond(event.exchange, reply(event), pair.now);
  };

/** One end without another: what it sends is looked at, what it gets is made up. */
export const lone = (): Exchanges => new Exchanges({ randomToken: (length) => new Uint8Array(length).fill(9) });
