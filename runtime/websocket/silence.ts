/**
 * The silence before a WebSocket was cut: what an idle limit of a proxy looks like from one end.
 *
 * A message that was sent just before the cut may have met it on the way, so the silence before that message counts,
 * too. One that was sent earlier without an answer ended the silence: then the cut has another cause. So has one after
 * a silence that this WebSocket has survived before.
 */
import { RemoteError } from '../../protocol/errors/index.ts';

/** Our constants, ms: a pause that may be one; and from a message to a cut that it met. */
const PAUSE = 3_000;
const MET = 1_000;
/** Share of a silence that was survived from which another one may still be the limit: timers are late now and then. */
const SURVIVED = 0.9;

/** It ended while a session ran over it, without a message that ended the session. */
export class WebSocketCut extends RemoteError {
  override name = 'WebSocketCut';
  /** ms without a message before it, as far as they may be its cause, else 0. */
  readonly silence: number;

  constructor(message: string, silence: number) {
    super('CLOSED', message);
    this.silence = silence;
  }
}

export class Silence {
  /** Time of the last message, either way. */
  #last: number;
  /** Begin and end of a silence that a sent message ended; both 0 once something has arrived. */
  #from = 0;
  #to = 0;
  /** The longest that was survived, ms. */
  #survived = 0;

  constructor(now: number) {
    this.#last = now;
  }

  sent(now: number): void {
    if (now - this.#last >= PAUSE) {
      this.#from = this.#last;
      this.#to = now;
    }
    this.#last = now;
  }

  received(now: number): void {
    const pause = this.#to > 0 ? this.#to - this.#from : now - this.#last;
    this.#survived = Math.max(this.#survived, pause);
    this.#to = 0;
    this.#last = now;
  }

  /** Returns the ms before a cut that may be its cause; 0: its cause is another one. */
  before(now: number): number {
    const hasMet = this.#to > 0 && now - this.#to <= MET;
    const silence = now - (hasMet ? this.#from : this.#last);
    return silence < SURVIVED * this.#survived ? 0 : silence;
  }
}
