/**
 * Whether a driver's next service runs at once or after the whole batch of IO. After a service for several datagrams
 * more are expected: then services wait for their batch, until such a batch is a single datagram. To find out whether
 * datagrams come in batches, one service in `LOOK_EVERY` waits for its batch. A clock cannot show this: how soon a
 * socket delivers the next queued datagram depends on the machine; on a slow one it takes as long as a response on a
 * fast one.
 */

/**
 * Immediate services before one waits for its batch, to see how many datagrams that has: batches of a bulk transfer
 * have 31.
 */
const LOOK_EVERY = 16;

export class ServicePace {
  /** Datagrams since the last service. */
  arrived = 0;
  /**
   * Immediate services left, 0 after one for several datagrams; and how many follow the next batch of a single
   * datagram.
   */
  #atOnce = LOOK_EVERY;
  #nextAtOnce = LOOK_EVERY;

  get isAtOnce(): boolean {
    return this.#atOnce > 0;
  }

  /**
   * Counts a service. After batches of several, services wait often at first: 1, 2, 4 … `LOOK_EVERY` immediate ones
   * between those that wait.
   */
  served(): void {
    if (this.arrived > 1) {
      this.#atOnce = 0;
      this.#nextAtOnce = 1;
    } else if (this.#atOnce > 0) this.#atOnce--;
    else {
      this.#atOnce = this.#nextAtOnce;
      this.#nextAtOnce = Math.min(2 * this.#nextAtOnce, LOOK_EVERY);
    }
    this.arrived = 0;
  }
}
