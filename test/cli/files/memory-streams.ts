/**
 * Streams between a client and the file service of a device, in memory: the part of a connection and a device that
 * `svc stream` and `svc device` need. A stream holds 64 KiB each way, and can be cut after any number of bytes.
 */
import type { Connection } from '../../../client/node.ts';
import type { Device, DeviceStream } from '../../../device/index.ts';
import { LocalError } from '../../../protocol/errors/index.ts';

const WINDOW = 65_536;

/** One direction. */
class Pipe {
  #chunks: Uint8Array[] = [];
  #held = 0;
  #ended = false;
  #failure: LocalError | null = null;
  #waiting: (() => void)[] = [];

  get over(): boolean {
    return this.#failure !== null || (this.#ended && this.#held === 0);
  }

  async write(data: Uint8Array): Promise<void> {
    for (let at = 0; at < data.length; ) {
      while (this.#held >= WINDOW && this.#failure === null) await this.#news();
      if (this.#failure !== null) throw this.#failure;
      if (this.#ended) throw new LocalError('CLOSED', 'closed');
      const piece = data.slice(at, at + WINDOW - this.#held);
      this.#chunks.push(piece);
      this.#held += piece.length;
      at += piece.length;
      this.#wake();
    }
  }

  async read(max: number): Promise<Uint8Array> {
    for (;;) {
      if (this.#failure !== null) throw this.#failure;
      const chunk = this.#chunks.shift();
      if (chunk === undefined) {
        if (this.#ended) throw new LocalError('END_OF_FILE', 'end');
        await this.#news();
        continue;
      }
      if (chunk.length > max) this.#chunks.unshift(chunk.subarray(max));
      const taken = chunk.subarray(0, max);
      this.#held -= taken.length;
      this.#wake();
      return taken;
    }
  }

  /** Resolves when all has been read. */
  async end(): Promise<void> {
    this.#ended = true;
    this.#wake();
    while (this.#held > 0 && this.#failure === null) await this.#news();
    if (this.#failure !== null) throw this.#failure;
  }

  fail(): void {
    if (this.over) return;
    this.#failure = new LocalError('STOPPED', 'the stream was aborted');
    this.#wake();
  }

  #news(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  #wake(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}

/** The parts of a stream that both ends have. */
class Half {
  readonly #from: Pipe;
  readonly #to: Pipe;
  readonly #count: (bytes: number) => void;

  constructor(from: Pipe, to: Pipe, count: (bytes: number) => void = () => {}) {
    this.#from = from;
    this.#to = to;
    this.#count = count;
  }

  get ended(): boolean {
    return this.#from.over && this.#to.over;
  }

  async read(max = WINDOW): Promise<Uint8Array> {
    const data = await this.#from.read(max);
    this.#count(data.length);
    return data;
  }

  async write(data: Uint8Array): Promise<void> {
    for (let at = 0; at < data.length; at += WINDOW) {
      const piece = data.subarray(at, at + WINDOW);
      this.#count(piece.length);
      await this.#to.write(piece);
    }
  }

  close(): Promise<void> {
    return this.#to.end();
  }

  abort(): void {
    this.#from.fail();
    this.#to.fail();
  }
}

type Listener = (stream: DeviceStream) => Promise<void>;

/** A device with stream listeners. */
export class MemoryDevice {
  #listener: Listener | undefined;
  readonly #serving = new Set<Promise<void>>();

  /** In the form that the file service expects. */
  get device(): Device {
    const device = {
      addStreamListener: (_port: number, listener: Listener) => (this.#listener = listener),
      grant: async () => ({ release: () => {} }),
    };
    return device as unknown as Device;
  }

  /** Resolves when no stream is being served. */
  async settled(): Promise<void> {
    while (this.#serving.size > 0) await Promise.all(this.#serving);
  }

  /**
   * A connection of a client.
   * @param cutAfter bytes in both directions of its first stream after which that stream breaks
   */
  connection(client = 'a'.repeat(64), cutAfter = Number.POSITIVE_INFINITY): Connection {
    let left = cutAfter;
    const openStream = (port: number) => {
      const [up, down] = [new Pipe(), new Pipe()];
      const near = new Half(down, up, (bytes) => {
        left -= bytes;
        if (left < 0) near.abort();
      });
      this.#serve(port, client, new Half(up, down));
      return Object.assign(near, { opened: Promise.resolve() });
    };
    return { openStream } as unknown as Connection;
  }

  #serve(port: number, clientFingerprint: string, half: Half): void {
    const stream = { port, connection: { clientFingerprint }, accept: () => half, refuse: () => half.abort() };
    const serving = (async () => this.#listener?.(stream as unknown as DeviceStream))().catch(() => half.abort());
    this.#serving.add(serving);
    void serving.then(() => this.#serving.delete(serving));
  }
}
