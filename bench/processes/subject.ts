/**
 * The one measurement that every transport goes through, ours and the peers': a process listens, another connects, and over one pipe between
 * them go bulk data and echoes.
 *
 * A pipe carries jobs one after the other. Each begins with a header of 16 bytes (purpose, whether to check, length), then come `length`
 * bytes. The far end of a bulk job swallows them and answers with 32 bytes, their SHA-256 when it was asked to check; that of an echo job
 * sends each byte back. So the end of a bulk job is acknowledged by the application, the same for all.
 */
import { createHash, randomBytes } from 'node:crypto';
import { serve } from './child.ts';

export interface Pipe {
  /** Resolves, or returns nothing, when more may be sent. The bytes are not changed afterwards. */
  send(data: Uint8Array): Promise<void> | void;
  close(): void;
}

/** Gets what arrives on a pipe, in order; the bytes are valid during the call only. */
export type Received = (data: Uint8Array) => void;

export interface Transport<Address> {
  /** Serves from now on. What it returns must be what IPC can carry. */
  listen(host: string, accepted: (pipe: Pipe) => Received): Promise<Address>;
  /** A new connection, with all that a first byte of data needs. */
  connect(address: Address, received: Received): Promise<Pipe>;
}

const HEADER = 16;
const BULK = 1;
const ECHO = 2;
const ANSWER = 32;
const CHUNK = 256 * 1024;
/** Where chunks are cut from, each elsewhere, so that exchanged ones are noticed. */
const POOL = randomBytes(2 * CHUNK);
const ECHO_SIZE = 64;

let arrived = 0;

/** Serves the calls of a bench over this transport. */
export function subject<Address>(transport: Transport<Address>): void {
  let kept: { readonly pipe: Pipe; readonly inbox: Inbox } | null = null;
  const connected = () => {
    if (kept === null) throw new Error('not connected');
    return kept;
  };
  serve({
    listen: ({ host }: { host: string }) => transport.listen(host, farEnd),

    /** Keeps the connection for `bulk` and `echo`. */
    async connect({ address }: { address: Address }) {
      const inbox = new Inbox();
      kept = { pipe: await transport.connect(address, inbox.received), inbox };
    },

    /** Megabytes per second, from the first byte given to the transport until the far end has answered that it has all. */
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
      if (hash !== null && !hash.digest().equals(answer)) throw new Error('what arrived is not what was sent');
      return bytes / 1000 / milliseconds;
    },

    /** Round-trip times of 64 bytes, one at a time, microseconds. */
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

    /** Milliseconds from nothing to the first echo of a new connection. */
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

    /** Bytes that have arrived here so far, on all pipes. */
    arrived: () => arrived,

    /** Seconds of processor time so far. */
    cpu() {
      const { user, system } = process.cpuUsage();
      return (user + system) / 1e6;
    },
  });
}

/** The end that listens: does the jobs of one pipe. */
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

/** A pipe may be gone before its last answer; the bench notices at the other end. */
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

/** What arrived at the end that connects, taken in pieces of known length by one taker at a time. */
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
