/**
 * How long a NAT or a firewall remembers a flow, as Linux connection tracking does: `timeout` ms after each datagram,
 * or `streamTimeout` once the flow had traffic both ways and is older than 2 s (nf_conntrack_proto_udp.c). Each
 * datagram in either direction restarts the time (RFC 4787 §6).
 */

export interface FlowTimeouts {
  /** ms after the last datagram of a flow with one exchange, or none. */
  readonly timeout: number;
  /** ms after the last datagram of a flow with traffic both ways for more than 2 s. */
  readonly streamTimeout: number;
}

/** Age in ms from which an answered flow counts as a stream. */
const STREAM_AGE = 2000;

/** State of one flow. */
export class FlowState {
  readonly #since: number;
  #answered = false;
  #expires = 0;

  constructor(now: number) {
    this.#since = now;
  }

  /** When the flow is forgotten. */
  get expires(): number {
    return this.#expires;
  }

  /** Notes a datagram. */
  touch(direction: 'out' | 'in', now: number, { timeout, streamTimeout }: FlowTimeouts): void {
    this.#answered ||= direction === 'in';
    const isStream = this.#answered && now - this.#since > STREAM_AGE;
    this.#expires = now + (isStream ? streamTimeout : timeout);
  }
}

/** The flows of one table, by a key that the caller chooses. */
export class FlowStates {
  readonly #timeouts: FlowTimeouts;
  readonly #states = new Map<string, FlowState>();
  #expires = 0;
  #sweepAt = FIRST_SWEEP;

  constructor(timeouts: FlowTimeouts) {
    this.#timeouts = timeouts;
  }

  /** When the last flow is forgotten. */
  get expires(): number {
    return this.#expires;
  }

  has(key: string, now: number): boolean {
    return (this.#states.get(key)?.expires ?? 0) > now;
  }

  /** Notes a datagram of this flow; begins an unknown flow. */
  touch(key: string, direction: 'out' | 'in', now: number): void {
    let state = this.#states.get(key);
    if (state === undefined || state.expires <= now) {
      if (this.#states.size >= this.#sweepAt) this.#sweep(now);
      state = new FlowState(now);
      this.#states.set(key, state);
    }
    state.touch(direction, now, this.#timeouts);
    this.#expires = Math.max(this.#expires, state.expires);
  }

  clear(): void {
    this.#states.clear();
    this.#expires = 0;
  }

  #sweep(now: number): void {
    for (const [key, state] of this.#states) if (state.expires <= now) this.#states.delete(key);
    this.#sweepAt = Math.max(FIRST_SWEEP, 2 * this.#states.size);
  }
}

/** Entries before the first sweep. */
const FIRST_SWEEP = 64;
