/**
 * Limits the connections to services that a device's tunnels hold together. Each takes a file descriptor, of which a
 * process often has 1,024. Without free descriptors the device could save nothing, and its owner could not even delete
 * the user whose tunnels they are.
 *
 * A client gets another connection only while it holds no more than are free, so that one client cannot take all.
 * Clients are counted by key, over all their connections.
 */

/** All connections to services, TCP and UDP. */
const CAPACITY = 512;

export class TunnelConcurrencyLimit {
  readonly #held = new Map<string, number>();
  #size = 0;

  /**
   * @param key fingerprint of the client
   * @returns a function that releases the slot, safe to call twice; null when there is none
   */
  acquire(key: string): (() => void) | null {
    const held = this.#held.get(key) ?? 0;
    if (this.#size + Math.max(1, held) > CAPACITY) return null;
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
