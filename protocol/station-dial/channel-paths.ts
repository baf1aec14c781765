/**
 * Which way a channel to a base station goes while it stands: UDP where it gets through, a WebSocket where it does not (docs/transport.md §8).
 *
 * On UDP: when nothing comes back, the path is asked. If it does not answer, a WebSocket is opened, and the channel migrates there.
 * On a WebSocket: UDP is asked each minute, and the channel migrates back when it answers; the WebSocket is kept a moment longer. When nothing
 * comes back on it, it is asked as well. If it does not answer, another one is opened and UDP asked; the first that answers is taken. Each
 * takes a connection id, and new ones come only while packets do: when none is left, the channel ends.
 *
 * `now` is a number of ms. After each call: `nextEvent` until null, then `nextTimeout`.
 */
import { Fifo } from '../fifo.ts';

export type Over = 'udp' | 'websocket';

export type ChannelPathsEvent =
  /** Challenge the path in use; then `activeAnswered` or `activeSilent`. */
  | { readonly kind: 'ask-active' }
  /** Challenge the station by UDP; then `udpAnswered` or `udpSilent`. A question under way is given up. */
  | { readonly kind: 'ask-udp' }
  /** Open a WebSocket and challenge it; then `webSocketAnswered`, `webSocketFailed` or `withoutIds`. An attempt under way is given up. */
  | { readonly kind: 'open-websocket' }
  /** The channel is to go that way. */
  | { readonly kind: 'migrate'; readonly to: Over }
  /** The WebSocket that is not in use, or was opened for nothing, is to be closed. */
  | { readonly kind: 'close-websocket' }
  /** Let the channel end: a new one has connection ids. */
  | { readonly kind: 'end' };

/** ms between two questions whether UDP gets through again. */
export const UDP_INTERVAL = 60_000;
/** ms from the end of one attempt to open a WebSocket to the next. */
const REOPEN_PAUSE = 3_000;
/** ms a WebSocket stays open after the channel has left it: what worked a moment ago may fail again. */
const LINGER = 10_000;
const never = Number.POSITIVE_INFINITY;

export class ChannelPaths {
  readonly #events = new Fifo<ChannelPathsEvent>();
  #over: Over;
  #isAskingActive = false;
  #isAskingUdp = false;
  #isOpening = false;
  /** The channel has to leave its path: the first that answers takes it. */
  #isFleeing = false;
  #udpAt: number;
  #closeAt = never;
  #openFrom = Number.NEGATIVE_INFINITY;

  constructor(over: Over, now: number) {
    this.#over = over;
    this.#udpAt = over === 'udp' ? never : now + UDP_INTERVAL;
  }

  get over(): Over {
    return this.#over;
  }

  /** Nothing comes back on the path in use. */
  get isFleeing(): boolean {
    return this.#isFleeing;
  }

  nextEvent(): ChannelPathsEvent | null {
    return this.#events.shift() ?? null;
  }

  nextTimeout(): number {
    return Math.min(this.#udpAt, this.#closeAt);
  }

  handleTimeout(now: number): void {
    if (this.#closeAt <= now) {
      this.#closeAt = never;
      this.#emit({ kind: 'close-websocket' });
    }
    if (this.#udpAt <= now) this.#askUdp(now);
  }

  /** Nothing has come back on the path in use for two probe timeouts. */
  suspected(now: number): void {
    if (this.#isFleeing) this.#flee(now);
    if (this.#isAskingActive) return;
    this.#isAskingActive = true;
    this.#emit({ kind: 'ask-active' });
  }

  /** This host is in another network, where a WebSocket of before leads nowhere: nothing is waited for. UDP has other ways to notice and to migrate. */
  networkChanged(now: number): void {
    if (this.#over === 'udp') return;
    this.#isFleeing = true;
    this.#openFrom = now;
    // What was begun in the network of before leads nowhere, and would be waited for.
    this.#isOpening = false;
    this.#isAskingUdp = false;
    this.#flee(now);
  }

  activeAnswered(): void {
    this.#isAskingActive = false;
    this.#isFleeing = false;
  }

  activeSilent(now: number): void {
    if (!this.#isAskingActive) return;
    this.#isAskingActive = false;
    this.#isFleeing = true;
    this.#flee(now);
  }

  udpAnswered(): void {
    this.#isAskingUdp = false;
    if (this.#over === 'websocket') this.#emit({ kind: 'migrate', to: 'udp' });
  }

  udpSilent(): void {
    this.#isAskingUdp = false;
  }

  /** The one that was opened. */
  webSocketAnswered(now: number): void {
    this.#isOpening = false;
    this.#openFrom = now + REOPEN_PAUSE;
    // The path in use has answered meanwhile.
    this.#emit(this.#isFleeing ? { kind: 'migrate', to: 'websocket' } : { kind: 'close-websocket' });
  }

  /** No path can be challenged until something comes back on the one in use. */
  withoutIds(now: number): void {
    if (this.#isFleeing) this.#emit({ kind: 'end' });
    this.webSocketFailed(now);
  }

  /** It did not open, was not answered, or has ended. */
  webSocketFailed(now: number): void {
    if (!this.#isOpening) return;
    this.#isOpening = false;
    this.#openFrom = now + REOPEN_PAUSE;
    this.#emit({ kind: 'close-websocket' });
  }

  /** The channel goes this way from now on. */
  migrated(over: Over, now: number): void {
    this.#over = over;
    this.#isFleeing = false;
    this.#isAskingActive = false;
    this.#udpAt = over === 'udp' ? never : now + UDP_INTERVAL;
    this.#closeAt = over === 'udp' && !this.#isOpening ? now + LINGER : never;
  }

  #flee(now: number): void {
    if (!this.#isOpening && now >= this.#openFrom) {
      this.#isOpening = true;
      // The end of this attempt says what is closed: nothing closes the new one while it is challenged.
      this.#closeAt = never;
      this.#emit({ kind: 'open-websocket' });
    }
    if (this.#over === 'websocket') this.#askUdp(now);
  }

  #askUdp(now: number): void {
    this.#udpAt = now + UDP_INTERVAL;
    if (this.#isAskingUdp) return;
    this.#isAskingUdp = true;
    this.#emit({ kind: 'ask-udp' });
  }

  #emit(event: ChannelPathsEvent): void {
    this.#events.push(event);
  }
}
