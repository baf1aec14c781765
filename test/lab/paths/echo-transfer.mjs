/**
 * Part of the lab process `client.mjs`: bytes that pass through a TCP tunnel to an echo service beside the device, and
 * back, at a pace. Each byte that comes back is compared, and its time is recorded.
 */
import { connect } from 'node:net';

/** Bytes that are repeated: a prime number, so that no part of a transfer resembles another one nearby. */
const PATTERN = pattern(1_000_003);
/** Maximum of bytes in flight. */
const WINDOW = 1_048_576;
/** Gaps between bytes of at least this many ms are recorded. */
const NOTED = 20;

export class EchoTransfer {
  sent = 0;
  received = 0;
  /** Why it ended early. */
  failure = null;
  /** Gaps between bytes, ms since the epoch. */
  #gaps = [];
  #last = Date.now();
  #socket;
  #timer;
  #ended;

  /**
   * @param port local port of the tunnel
   * @param bytes of a write
   * @param pace ms between two writes
   */
  static async begin(port, { bytes, pace }) {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true });
    await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject));
    return new EchoTransfer(socket, bytes, pace);
  }

  constructor(socket, bytes, pace) {
    this.#socket = socket;
    socket.on('data', (data) => this.#arrived(data));
    this.#ended = new Promise((resolve) => socket.once('close', resolve));
    socket.on('error', ({ message }) => this.#fail(message));
    socket.once('end', () => this.sent > this.received && this.#fail(`ended after ${this.received} of ${this.sent} bytes`));
    this.#timer = setInterval(() => this.#write(bytes), pace);
  }

  /**
   * @param since ms since the epoch. @returns the longest gap since then, and the time until the first byte; null: none
   * came
   */
  stall(since) {
    const first = this.#gaps.find(([, to]) => to > since)?.[1] ?? (this.#last > since ? since : null);
    const all = [...this.#gaps, [this.#last, Date.now()]];
    const longest = Math.max(...all.map(([from, to]) => to - Math.max(from, since)));
    return { longest, first: first === null ? null : first - since, received: this.received, failure: this.failure };
  }

  /** Stops writing and waits for the bytes in flight. @returns the number of bytes that came back */
  async finish() {
    clearInterval(this.#timer);
    this.#socket.end();
    await this.#ended;
    if (this.received !== this.sent) this.#fail(`${this.received} of ${this.sent} bytes came back`);
    if (this.failure !== null) throw new Error(this.failure);
    return this.received;
  }

  #write(bytes) {
    const length = Math.min(bytes, WINDOW - (this.sent - this.received));
    for (let left = length; left > 0; ) {
      const at = this.sent % PATTERN.length;
      const part = PATTERN.subarray(at, at + left);
      this.#socket.write(part);
      this.sent += part.length;
      left -= part.length;
    }
  }

  #arrived(data) {
    const now = Date.now();
    if (now - this.#last > NOTED) this.#gaps.push([this.#last, now]);
    this.#last = now;
    for (let done = 0; done < data.length; ) {
      const at = this.received % PATTERN.length;
      const part = PATTERN.subarray(at, at + data.length - done);
      if (!part.equals(data.subarray(done, done + part.length))) return this.#fail(`wrong bytes came back after ${this.received}`);
      this.received += part.length;
      done += part.length;
    }
  }

  #fail(reason) {
    this.failure ??= reason;
    clearInterval(this.#timer);
    this.#socket.destroy();
  }
}

function pattern(length) {
  const bytes = Buffer.alloc(length);
  let state = 1;
  for (let i = 0; i < length; i++) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    bytes[i] = state >>> 24;
  }
  return bytes;
}
