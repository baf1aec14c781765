/**
 * Finds the interval that keeps a WebSocket open behind proxies which end one that is silent for some time. One per
 * host: most of them are a property of its network.
 *
 * No probe can ask for that limit, so only WebSockets that were cut show it: when two were cut after about the same
 * silence, the interval is below it with a margin. Two that are cut after that show a shorter one. A station that is
 * killed, or a proxy that restarts, cuts after any silence, and rarely twice after the same one.
 */
import { WEBSOCKET_INTERVAL } from './profile.ts';

/**
 * Our constants. Two silences are the same when the shorter one is at least this share of the longer one: a proxy may
 * look for silent connections only now and then.
 */
const SAME = 0.8;
/** Share of the shorter silence that is used: the rest is for the travel time, and a timer that is late. */
const SHARE = 0.75;
/**
 * ms of silence before a cut that counts: a shorter one is no idle limit of a proxy. It bounds the interval, too: a
 * PING each 3 s, 20 a minute, costs a radio that never sleeps and about 200 kB an hour.
 */
const MIN_SILENCE = 4_000;

export class IdleLimit {
  #interval = WEBSOCKET_INTERVAL;
  /** Silence before the last cut that counted, ms; 0: none. */
  #silence = 0;

  /** ms between keep-alives over a WebSocket, at most: 3 to 25 s. */
  get interval(): number {
    return this.#interval;
  }

  /** Call when a WebSocket was cut. @param silence ms without a message before that */
  cut(silence: number): void {
    if (silence < MIN_SILENCE) return;
    const shorter = Math.min(silence, this.#silence);
    const isSame = shorter >= SAME * Math.max(silence, this.#silence);
    this.#silence = isSame ? 0 : silence;
    if (isSame) this.#interval = Math.min(this.#interval, Math.round(SHARE * shorter));
  }
}
