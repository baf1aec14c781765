/**
 * The path of a channel to a base station while it is open: UDP where that works, a WebSocket where it does not
 * (docs/transport.md §8).
 *
 * On UDP: when nothing arrives, the path is challenged. If it does not answer, a WebSocket is opened, and the channel
 * migrates there. On a WebSocket: UDP is challenged each minute, and the channel migrates back when it answers; the
 * WebSocket is kept a moment longer. When nothing arrives on it, it is challenged as well. If it does not answer,
 * another one is opened and UDP challenged; the first that answers is used. Each takes a connection id, and new ones
 * arrive only while packets do: when none is left, the channel ends.
 *
 * `now` is a number of ms. After each call: `nextEvent` until null, then `nextTimeout`.
 */
import { Fifo } from '../fifo.ts';

export type Over = 'udp' | 'websocket';

export type ChannelPathsEvent =
  /** Challenge the path in use; then `activeAnswered` or `activeSilent`. */
  | { readonly kind: 'ask-active' }
  /** Challenge the station by UDP; then `udpAnswered` or `udpSilent`. Replaces a challenge in progress. */
  | { readonly kind: 'ask-udp' }
  /**
   * Open a WebSocket and challenge it; then `webSocketAnswered`, `webSocketFailed` or `withoutIds`. Replaces an attempt
   * in progress.
   */
  | { readonly kind: 'open-websocket' }
  /** Migrate the channel to that way. */
  | { readonly kind: 'migrate'; readonly to: Over }
  /** Close the WebSocket that is not in use, or not needed. */
  | { readonly kind: 'close-websocket' }
  /** Let the channel end: a new one has connection ids. */
  | { readonly kind: 'end' };

/** ms between two challenges by UDP. */
export const UDP_INTERVAL = 60_000;
/** ms from the end of one attempt to open a WebSocket to the next. */
const REOPEN_PAUSE = 3_000;
/** ms for which a WebSocket stays open after the channel has left it: UDP may fail again. */
const LINGER = 10_000;
const never = Number.POSITIVE_INFINITY;

export class ChannelPaths {
  readonly #events = new Fifo<ChannelPathsEvent>();
  #over: Over;
  #isAskingActive = false;
  #isAskingUdp = false;
  #isOpening = false;
  /** The channel has to leave its path: the first path that answers gets it. */
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

  /** True when nothing arrives on the path in use. */
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

  /** Call when nothing has arrived on the path in use for two probe timeouts. */
  suspected(now: number): void {
    if (this.#isFleeing) this.#flee(now);
    if (this.#isAskingActive) return;
    this.#isAskingActive = true;
    this.#emit({ kind: 'ask-active' });
  }

  /**
   * Call when this host is in another network, where an existing WebSocket is useless: the channel does not wait for
   * it. UDP has other ways to detect this and to migrate.
   */
  networkChanged(now: number): void {
    if (this.#over === 'udp') return;
    this.#isFleeing = true;
    this.#openFrom = now;
    // Attempts that began in the previous network are useless, and would be waited for.
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

  /** Call when the opened WebSocket answered. */
  webSocketAnswered(now: number): void {
    this.#isOpening = false;
    this.#openFrom = now + REOPEN_PAUSE;
    // The path in use may have answered meanwhile.
    this.#emit(this.#isFleeing ? { kind: 'migrate', to: 'websocket' } : { kind: 'close-websocket' });
  }

  /** Call when no path can be challenged until something arrives on the one in use. */
  withoutIds(now: number): void {
    if (this.#isFleeing) this.#emit({ kind: 'end' });
    this.webSocketFailed(now);
  }

  /** Call when the WebSocket did not open, did not answer, or has ended. */
  webSocketFailed(now: number): void {
    if (!this.#isOpening) return;
    this.#isOpening = false;
    this.#openFrom = now + REOPEN_PAUSE;
    this.#emit({ kind: 'close-websocket' });
  }

  /** Call when the channel has migrated. */
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
      // The end of this attempt decides what is closed: nothing must close the new one while it is challenged.
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
