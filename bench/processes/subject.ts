/**
 * The same measurement for every transport, ours and the peers': one process listens, another connects, and one pipe
 * between them carries bulk data and echoes.
 *
 * A pipe carries jobs one after the other. Each begins with a header of 16 bytes (purpose, whether to check, length),
 * followed by `length` bytes. The far end of a bulk job discards them and answers with 32 bytes, their SHA-256 if the
 * header asks for a check. The far end of an echo job returns each byte. So the application acknowledges the end of a
 * bulk job, with every transport.
 */
import { createHash, randomBytes } from 'node:crypto';
import { serve } from './child.ts';

export interface Pipe {
  /** Resolves, or returns nothing, when the pipe accepts more. The caller does not change the bytes afterwards. */
  send(data: Uint8Array): Promise<void> | void;
  close(): void;
}

/** Receives the data of a pipe, in order. The bytes are valid only during the call. */
export type Received = (data: Uint8Array) => void;

export interface Transport<Address> {
  /** Starts listening. IPC must be able to carry the returned address. */
  listen(host: string, accepted: (pipe: Pipe) => Received): Promise<Address>;
  /** Opens a new connection that is ready for the first byte of data. */
  connect(address: Address, received: Received): Promise<Pipe>;
}

const HEADER = 16;
const BULK = 1;
const ECHO = 2;
const ANSWER = 32;
const CHUNK = 256 * 1024;
/** Source of the chunks, each from another offset, so that a check notices exchanged ones. */
const POOL = randomBytes(2 * CHUNK);
const ECHO_SIZE = 64;

let arrived = 0;

/** Serves the calls of a bench over `transport`. */
export function subject<Address>(transport: Transport<Address>): void {
  let kept: { readonly pipe: Pipe; readonly inbox: Inbox } | null = null;
  const connected = () => {
    if (kept === null) throw new Error('not connected');
    return kept;
  };
  serve({
    listen: ({ host }: { host: string }) => transport.listen(host, farEnd),

    /** Connects, and keeps the connection for `bulk` and `echo`. */
    async connect({ address }: { address: Address }) {
      const inbox = new Inbox();
      kept = { pipe: await transport.connect(address, inbox.received), inbox };
    },

    /** Returns megabytes per second, from the first byte passed to the transport until the far end's answer. */
    async bulk({ bytes, check = false }: { bytes: number; check?: boolean }) {
      const { pipe, inbox } = connected();
      const hash = check ? createHash('sha256') : null;
      const start = performance.now();
      await pipe.send(header(BULK, check, bytes));
      for (let sent = 0; sent < bytes; sent += CHUNK) {
        const from = (sent / CHUNK) % CHUNK;
        const chunk = POOL.subarray(from, from + Math.min(CHUNK, bytes - sent));
        hash?.update(chunk);
        await pipe.send(chunk);
      }
      const answer = await inbox.take(ANSWER);
      const milliseconds = performance.now() - start;
      if (hash !== null && !hash.digest().equals(answer)) throw new Error('the received bytes differ from the sent ones');
      return bytes / 1000 / milliseconds;
    },

    /** Returns the round-trip times of 64 bytes, one at a time, microseconds. */
    async echo({ count }: { count: number }) {
      const { pipe, inbox } = connected();
      const times: number[] = [];
      await pipe.send(header(ECHO, false, count * ECHO_SIZE));
      for (let index = 0; index < count; index++) {
        const start = performance.now();
        await pipe.send(POOL.subarray(0, ECHO_SIZE));
        await inbox.take(ECHO_SIZE);
        times.push((performance.now() - start) * 1000);
      }
      return times;
    },

    /** Returns the milliseconds from connect to the first echo over a new connection. */
    async firstEcho({ address }: { address: Address }) {
      const inbox = new Inbox();
      const start = performance.now();
      const pipe = await transport.connect(address, inbox.received);
      await pipe.send(Buffer.concat([header(ECHO, false, ECHO_SIZE), POOL.subarray(0, ECHO_SIZE)]));
      await inbox.take(ECHO_SIZE);
      const milliseconds = performance.now() - start;
      pipe.close();
      return milliseconds;
    },

    /** Returns the bytes received so far, on all pipes. */
    arrived: () => arrived,

    /** Returns the seconds of processor time so far. */
    cpu() {
      const { user, system } = process.cpuUsage();
      return (user + system) / 1e6;
    },
  });
}

/** The listening end: runs the jobs of one pipe. */
function farEnd(pipe: Pipe): Received {
  const head = new Uint8Array(HEADER);
  let known = 0;
  let left = 0;
  let hash: ReturnType<typeof createHash> | null = null;

  const begin = (): void => {
    known = 0;
    left = new DataView(head.buffer).getFloat64(8);
    hash = head[1] === 1 ? createHash('sha256') : null;
  };
  const take = (part: Uint8Array): void => {
    left -= part.length;
    if (head[0] === ECHO) void send(pipe, part.slice());
    else hash?.update(part);
    if (head[0] === BULK && left === 0) void send(pipe, hash?.digest() ?? new Uint8Array(ANSWER));
  };
  return (data) => {
    arrived += data.length;
    for (let at = 0; at < data.length; ) {
      const part = data.subarray(at, at + (left > 0 ? left : HEADER - known));
      at += part.length;
      if (left > 0) {
        take(part);
        continue;
      }
      head.set(part, known);
      known += part.length;
      if (known === HEADER) begin();
    }
  };
}

/** Sends an answer. A pipe may close before its last one; the other end notices. */
async function send(pipe: Pipe, data: Uint8Array): Promise<void> {
  try {
    await pipe.send(data);
  } catch {
    pipe.close();
  }
}

function header(purpose: number, check: boolean, length: number): Uint8Array {
  const bytes = new Uint8Array(HEADER);
  bytes[0] = purpose;
  bytes[1] = check ? 1 : 0;
  new DataView(bytes.buffer).setFloat64(8, length);
  return bytes;
}

/** Data received at the connecting end. One reader at a time takes pieces of known length. */
class Inbox {
  #bytes: Uint8Array = new Uint8Array(0);
  #waiting: { readonly count: number; readonly resolve: (bytes: Uint8Array) => void } | null = null;

  readonly received: Received = (data) => {
    this.#bytes = this.#bytes.length === 0 ? data.slice() : Buffer.concat([this.#bytes, data]);
    this.#give();
  };

  take(count: number): Promise<Uint8Array> {
    return new Promise((resolve) => {
      this.#waiting = { count, resolve };
      this.#give();
    });
  }

  #give(): void {
    if (this.#waiting === null || this.#bytes.length < this.#waiting.count) return;
    const { count, resolve } = this.#waiting;
    this.#waiting = null;
    resolve(this.#bytes.subarray(0, count));
    this.#bytes = this.#bytes.subarray(count);
  }
}
