/**
 * Limits the connections to services that a device's tunnels hold together. Each takes a file descriptor, of which a
 * process often has 1,024. Without free descriptors the device could save nothing, and its owner could not even delete
 * the user whose tunnels they are.
 *
 * Unless the application limits each client, a client gets another connection only while at least as many are free as
 * it holds, so that one client cannot take all. Clients are counted by key, over all their connections.
 */

/** Our constant: all connections to services, TCP and UDP. A quarter of 1,024 descriptors is left for all else. */
export const CAPACITY = 768;

export class TunnelConcurrencyLimit {
  /** Connections in all. */
  capacity = CAPACITY;
  /** Connections of one client; null: as many as are free. */
  perClient: number | null = null;
  readonly #held = new Map<string, number>();
  #size = 0;

  /**
   * @param key fingerprint of the client
   * @returns a function that releases the slot, safe to call twice; null when there is none
   */
  acquire(key: string): (() => void) | null {
    const held = this.#held.get(key) ?? 0;
    const isFull = this.perClient === null ? this.#size + held > this.capacity : held >= this.perClient;
    if (isFull || this.#size >= this.capacity) return null;
    this.#held.set(key, held + 1);
    this.#size++;
    let isHeld = true;
    return () => {
      if (isHeld) this.#release(key);
      isHeld = false;
    };
  }

  #release(key: string): void {
    const left = this.#held.get(key)! - 1;
    if (left === 0) this.#held.delete(key);
    else this.#held.set(key, left);
    this.#size--;
  }
}
