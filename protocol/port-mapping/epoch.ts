/**
 * Detects that a gateway has lost its mappings. Each answer states the seconds since the last loss (RFC 6887 §8.5).
 * NAT-PMP's rule (RFC 6886 §3.6) differs little, so one serves both.
 */

/** Insignificant difference between clocks, s. */
const TOLERANCE = 2;
/** Share by which a gateway's clock may be slow or fast. */
const DRIFT = 1 / 16;

export class Epoch {
  #server = -1;
  #client = 0;

  /**
   * Records the epoch of an answer.
   * @param server s;
   * @param now ms.
   * @returns true when the gateway has lost its state
   */
  isLost(server: number, now: number): boolean {
    const client = now / 1000;
    const lost = this.#server >= 0 && !this.#isContinuous(server - this.#server, client - this.#client, server);
    this.#server = server;
    this.#client = client;
    return lost;
  }

  #isContinuous(serverDelta: number, clientDelta: number, server: number): boolean {
    if (server < this.#server - 1) return false;
    return clientDelta + TOLERANCE >= serverDelta * (1 - DRIFT) && serverDelta + TOLERANCE >= clientDelta * (1 - DRIFT);
  }
}
