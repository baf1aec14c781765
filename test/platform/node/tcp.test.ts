/** The TCP pump: both directions, half closes, resets, and slow readers. */
import { EventEmitter, once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { type ByteStream, type PumpResult, pump, resetSocket } from '../../../platform/node/tcp.ts';
import { LocalError, RemoteError, type SvcError } from '../../../protocol/errors/index.ts';
import { Random } from '../../../testing/random.ts';

const opened: (Server | Socket)[] = [];

afterEach(() => {
  for (const item of opened.splice(0)) 'destroy' in item ? item.destroy() : item.close();
});

/** The two ends of a TCP connection; the pump gets `near`. */
async function tcpPair(): Promise<{ near: Socket; far: Socket }> {
  const server = createServer({ allowHalfOpen: true }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const near = connect({ port: (server.address() as { port: number }).port, host: '127.0.0.1' });
  const [far] = (await once(server, 'connection')) as [Socket];
  if (near.connecting) await once(near, 'connect');
  opened.push(server, near, far);
  far.on('error', () => {});
  return { near, far };
}

/** Resolves on `close`, with the error before it if there was one. */
function closing(socket: Socket): Promise<NodeJS.ErrnoException | undefined> {
  let error: NodeJS.ErrnoException | undefined;
  socket.on('error', (reason) => {
    error = reason;
  });
  return new Promise((resolve) => void socket.once('close', () => resolve(error)));
}

/** One direction of an in-memory stream: holds at most `room` bytes. */
class Direction {
  readonly changed = new EventEmitter().setMaxListeners(0);
  readonly room: number;
  #data = new Uint8Array(0);
  #ended = false;
  #error: Error | undefined;
  most = 0;
  onFailed: ((error: Error) => void) | null = null;

  constructor(room: number) {
    this.room = room;
  }

  async write(data: Uint8Array): Promise<void> {
    for (let start = 0; start < data.length; ) {
      while (this.#data.length >= this.room && this.#error === undefined) await once(this.changed, 'change');
      if (this.#error !== undefined) throw this.#error;
      const part = data.subarray(start, start + this.room - this.#data.length);
      this.#data = new Uint8Array(Buffer.concat([this.#data, part]));
      start += part.length;
      this.#change();
    }
  }

  async read(): Promise<Uint8Array> {
    while (this.#data.length === 0 && !this.#ended && this.#error === undefined) await once(this.changed, 'change');
    if (this.#error !== undefined) throw this.#error;
    if (this.#data.length === 0) throw new RemoteError('END_OF_FILE', 'end of stream');
    const data = this.#data;
    this.#data = new Uint8Array(0);
    this.#change();
    return data;
  }

  async end(): Promise<void> {
    this.#ended = true;
    this.#change();
    while (this.#data.length > 0 && this.#error === undefined) await once(this.changed, 'change');
    if (this.#error !== undefined) throw this.#error;
  }

  get held(): number {
    return this.#data.length;
  }

  fail(error: Error): void {
    if (this.#ended && this.#data.length === 0) return;
    this.#error = error;
    this.#change();
    this.onFailed?.(error);
  }

  #change(): void {
    this.most = Math.max(this.most, this.#data.length);
    this.changed.emit('change');
  }
}

class MemoryStream implements ByteStream {
  readonly in: Direction;
  readonly out: Direction;
  aborted = 0;
  onStopped: ((error: SvcError) => void) | null = null;

  constructor(incoming: Direction, outgoing: Direction) {
    this.in = incoming;
    this.out = outgoing;
    outgoing.onFailed = (error) => this.onStopped?.(error as SvcError);
  }

  read = () => this.in.read();
  write = (data: Uint8Array) => this.out.write(data);
  close = () => this.out.end();
  stats = () => ({ transport: { acknowledged: 0, buffered: this.out.held } });

  abort(): void {
    this.aborted++;
    for (const direction of [this.in, this.out]) direction.fail(new LocalError('STOPPED', 'the stream was aborted'));
  }
}

/** A tunnel: bytes flow `far` ↔ `near` ↔ pump ↔ `stream` ↔ `peer`; the test holds both outer ends. */
async function tunnel({ room = 65_536, signal, paused = false }: { room?: number; signal?: AbortSignal; paused?: boolean } = {}) {
  const { near, far } = await tcpPair();
  if (paused) near.pause();
  const [a, b] = [new Direction(room), new Direction(room)];
  const [stream, peer] = [new MemoryStream(a, b), new MemoryStream(b, a)];
  const result: Promise<PumpResult> = pump(stream, near, signal === undefined ? {} : { signal });
  return { near, far, stream, peer, result };
}

async function readAll(stream: ByteStream): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  try {
    for (;;) parts.push(await stream.read());
  } catch (error) {
    expect(error).toMatchObject({ code: 'END_OF_FILE' });
  }
  return new Uint8Array(Buffer.concat(parts));
}

async function readSocket(socket: Socket): Promise<Uint8Array> {
  const parts: Buffer[] = [];
  socket.on('data', (data) => parts.push(data));
  await once(socket, 'end');
  return new Uint8Array(Buffer.concat(parts));
}

/** Waits until a figure stops changing while a connection without back-pressure carries 1 MiB. */
async function settled(figure: () => number): Promise<void> {
  const { near, far } = await tcpPair();
  near.resume();
  for (let before = -1, carried = 0; before !== figure(); ) {
    before = figure();
    carried += 1 << 20;
    far.write(Buffer.alloc(1 << 20));
    while (near.bytesRead < carried) await once(near, 'data');
  }
}

describe('TCP pump', () => {
  it('carries bytes both ways at once, unchanged', { tags: ['slow'] }, async () => {
    const random = new Random('tcp');
    const [up, down] = [random.bytes(300_000), random.bytes(400_000)];
    const { far, peer, result } = await tunnel();
    const [atPeer, atFar] = [readAll(peer), readSocket(far)];
    far.end(up);
    for (let start = 0; start < down.length; start += 10_000) await peer.write(down.subarray(start, start + 10_000));
    await peer.close();
    expect(Buffer.compare(await atPeer, up)).toBe(0);
    expect(Buffer.compare(await atFar, down)).toBe(0);
    expect(await result).toEqual({ toSocket: down.length, toStream: up.length, error: null });
  });

  it('begins on a socket that was accepted with pauseOnConnect', async () => {
    const { far, peer, result } = await tunnel({ paused: true });
    far.end('hello');
    expect(Buffer.from(await readAll(peer)).toString()).toBe('hello');
    await peer.close();
    expect(await result).toMatchObject({ toStream: 5, error: null });
  });

  it('passes on the end of one direction while the other continues: socket first', async () => {
    const { far, peer, result } = await tunnel();
    far.end('question');
    expect(Buffer.from(await readAll(peer)).toString()).toBe('question');
    const answer = readSocket(far);
    await peer.write(Buffer.from('late '));
    await peer.write(Buffer.from('answer'));
    await peer.close();
    expect(Buffer.from(await answer).toString()).toBe('late answer');
    expect(await result).toEqual({ toSocket: 11, toStream: 8, error: null });
  });

  it('passes on the end of one direction while the other continues: stream first', async () => {
    const { far, peer, result } = await tunnel();
    await peer.write(Buffer.from('question'));
    const closing = peer.close();
    expect(Buffer.from(await readSocket(far)).toString()).toBe('question');
    await closing;
    far.write('late ');
    far.end('answer');
    expect(Buffer.from(await readAll(peer)).toString()).toBe('late answer');
    expect(await result).toEqual({ toSocket: 8, toStream: 11, error: null });
  });

  it('reads no more from the socket than the stream accepts', async () => {
    const { far, peer, near, result } = await tunnel({ room: 1000 });
    const chunk = Buffer.alloc(65_536, 7);
    for (let i = 0; i < 160; i++) far.write(chunk);
    await settled(() => near.bytesRead);
    expect(near.bytesRead).toBeLessThan(300_000);
    expect(far.writableLength).toBeGreaterThan(1_000_000);
    far.destroy();
    peer.abort();
    expect((await result).error).toMatchObject({ code: 'STOPPED' });
  });

  it('reads no more from the stream than the socket accepts', { tags: ['slow'] }, async () => {
    const { far, near, peer, stream, result } = await tunnel({ room: 16_384 });
    far.pause();
    let taken = 0;
    const writer = (async () => {
      for (;;) {
        await peer.write(Buffer.alloc(16_384));
        taken += 16_384;
      }
    })().catch((error: Error) => error);
    await settled(() => taken);
    expect(near.writableLength).toBeLessThan(100_000);
    expect(stream.in.most).toBeLessThanOrEqual(16_384);
    far.destroy();
    await writer;
    expect((await result).error).toMatchObject({ code: 'ECONNRESET' });
  });

  it('aborts the stream when the socket is reset', async () => {
    const { far, peer, stream, result } = await tunnel();
    const reading = peer.read();
    far.resetAndDestroy();
    await expect(reading).rejects.toMatchObject({ code: 'STOPPED' });
    expect((await result).error).toMatchObject({ code: 'ECONNRESET' });
    expect(stream.aborted).toBe(1);
  });

  it('resets the socket when the stream is aborted', async () => {
    const { far, near, peer, result } = await tunnel();
    const closed = closing(far);
    far.resume();
    peer.abort();
    expect(await closed).toMatchObject({ code: 'ECONNRESET' });
    expect(near.destroyed).toBe(true);
    expect((await result).error).toMatchObject({ code: 'STOPPED' });
  });

  it('ends both sides when the stream breaks after one direction has ended', async () => {
    const { far, peer, result } = await tunnel();
    far.end();
    await expect(peer.read()).rejects.toMatchObject({ code: 'END_OF_FILE' });
    peer.abort();
    expect((await result).error).toMatchObject({ code: 'STOPPED' });
  });

  it('ends both sides when the stream breaks after its other direction has ended, and nothing is written', async () => {
    const { far, near, peer, result } = await tunnel();
    far.resume();
    await Promise.all([peer.close(), once(far, 'end')]);
    peer.abort();
    expect((await result).error).toMatchObject({ code: 'STOPPED' });
    expect(near.destroyed).toBe(true);
  });

  it('ends both sides on the signal, before and during', async () => {
    for (const early of [true, false]) {
      const control = new AbortController();
      if (early) control.abort();
      const { far, near, stream, result } = await tunnel({ signal: control.signal });
      const closed = closing(far);
      far.resume();
      if (!early) control.abort();
      expect((await result).error?.message).toBe('the tunnel was stopped');
      await closed;
      expect([near.destroyed, stream.aborted]).toEqual([true, 1]);
    }
  });

  it('survives a socket that was closed before it began', async () => {
    const { near } = await tcpPair();
    near.destroy();
    await once(near, 'close');
    const stream = new MemoryStream(new Direction(10), new Direction(10));
    expect((await pump(stream, near)).error).toMatchObject({ message: 'the TCP connection was closed' });
    expect(stream.aborted).toBe(1);
  });
});

describe('the answer before a reset', () => {
  const turn = () => new Promise((resolve) => setImmediate(resolve));

  /**
   * Where it waits when the reset comes, while the stream takes little: in the kernel, which libuv reports as an end
   * when it reads both at once; in Node's buffer; in the kernel while the next call is a write.
   */
  it.each(['kernel', 'buffer', 'kernel, before a write'])('reaches a slow reader of the stream from the %s', async (place) => {
    const { far, near, peer, stream, result } = await tunnel({ room: 1_000 });
    far.setNoDelay(true);
    let sent = 0;
    const send = async (length: number): Promise<void> => {
      await new Promise<void>((done) => void far.write(Buffer.alloc(length), () => done()));
      sent += length;
      await turn();
    };
    if (place === 'buffer') while (near.readableLength < 3_000) await send(1_000);
    else if (place === 'kernel') await send(60_000);
    else while (sent - near.bytesRead < 30_000) await send(10_000);
    if (place === 'buffer') while (near.bytesRead < sent) await turn();
    far.resetAndDestroy();
    if (place === 'buffer') while (!near.destroyed) await turn();
    if (place === 'kernel, before a write') await peer.write(Buffer.alloc(1));
    let count = 0;
    const reading = (async () => {
      for (;;) count += (await peer.read()).length;
    })();
    await expect(reading).rejects.toMatchObject({ code: 'STOPPED' });
    expect(count).toBe(sent);
    expect(await result).toMatchObject({ toStream: sent, error: { code: 'ECONNRESET' } });
    expect(stream.aborted).toBe(1);
  });

  // Other systems do not show what their kernel still holds (unsent-bytes.ts).
  it.runIf(process.platform === 'linux')('reaches a slow reader of the socket', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout'] });
    try {
      const { far, near, peer, result } = await tunnel({ room: 1 << 20 });
      far.pause();
      // More than the peer's kernel takes while nothing is read.
      await peer.write(Buffer.alloc(1_000_000));
      while (peer.out.held > 0) await turn();
      peer.abort();
      while (vi.getTimerCount() === 0 && !near.destroyed) await turn();
      expect(near.destroyed).toBe(false);
      const closed = closing(far);
      let got = 0;
      far.on('data', (data) => {
        got += data.length;
      });
      far.resume();
      while (!near.destroyed) {
        await vi.advanceTimersByTimeAsync(100);
        await turn();
      }
      expect((await closed)?.code).toBe('ECONNRESET');
      expect(got).toBe(1_000_000);
      expect(await result).toMatchObject({ toSocket: 1_000_000, error: { code: 'STOPPED' } });
    } finally {
      vi.useRealTimers();
    }
  });

  it('is given up when nothing of it has moved for 5 s', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'performance'] });
    try {
      const { far, near, peer, stream } = await tunnel();
      far.write('answer');
      await once(near, 'data');
      far.resetAndDestroy();
      await closing(near);
      await vi.advanceTimersByTimeAsync(4_900);
      expect([stream.aborted, stream.out.held]).toEqual([0, 6]);
      await vi.advanceTimersByTimeAsync(200);
      expect(stream.aborted).toBe(1);
      await expect(peer.read()).rejects.toMatchObject({ code: 'STOPPED' });
    } finally {
      vi.useRealTimers();
    }
  });

  it('waits for the acceptance of the stream, and not after the signal', async () => {
    const control = new AbortController();
    const { near, far } = await tcpPair();
    const [a, b] = [new Direction(1_000), new Direction(1_000)];
    const stream = Object.assign(new MemoryStream(a, b), { opened: new Promise<void>(() => {}) });
    const result = pump(stream, near, { signal: control.signal });
    far.write('request');
    expect(Buffer.from(await b.read()).toString()).toBe('request');
    far.resetAndDestroy();
    await closing(near);
    await new Promise((resolve) => setImmediate(resolve));
    expect(stream.aborted).toBe(0);
    control.abort();
    expect(await result).toMatchObject({ toStream: 7, error: { code: 'ECONNRESET' } });
    expect(stream.aborted).toBe(1);
  });
});

describe('a peer that has ended its direction', () => {
  /** The far end has sent its end, and the pump has read it; time stands still. */
  async function halfClosed() {
    const opened = await tunnel();
    opened.far.end('question');
    expect(Buffer.from(await readAll(opened.peer)).toString()).toBe('question');
    return opened;
  }

  it('is found gone within a minute, as the system knows it then', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    try {
      const { far, stream, result } = await halfClosed();
      // What answers the system's probe once the program has closed its other direction, too.
      far.resetAndDestroy();
      await once(far, 'close');
      expect(stream.aborted).toBe(0);
      vi.advanceTimersByTime(60_000);
      expect(await result).toMatchObject({ toStream: 8, error: { code: expect.stringMatching(/^(EPIPE|ECONNRESET)$/) } });
      expect([stream.aborted, vi.getTimerCount()]).toEqual([1, 0]);
    } finally {
      vi.useRealTimers();
    }
  });

  it('stays for as long as it waits for the answer', async () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    try {
      const { far, peer, result } = await halfClosed();
      vi.advanceTimersByTime(3_600_000);
      const answer = readSocket(far);
      await peer.write(Buffer.from('answer'));
      await peer.close();
      expect(Buffer.from(await answer).toString()).toBe('answer');
      expect(await result).toMatchObject({ toSocket: 6, error: null });
    } finally {
      vi.useRealTimers();
    }
  });

  it('and every other is probed by the system after a minute of silence', async () => {
    const { near } = await tcpPair();
    const probed = vi.spyOn(near, 'setKeepAlive');
    const control = new AbortController();
    const result = pump(new MemoryStream(new Direction(10), new Direction(10)), near, { signal: control.signal });
    expect(probed.mock.calls).toEqual([[true, 60_000]]);
    control.abort();
    await result;
  });
});

describe('a reset', () => {
  it('closes a socket while Node shuts its direction down, and loses no written byte', async () => {
    const { near, far } = await tcpPair();
    far.allowHalfOpen = true;
    const closed = closing(near);
    near.write('all of it');
    await new Promise<void>((resolve) => void near.write('', () => resolve()));
    near.end();
    resetSocket(near);
    expect(await closed).toBe(undefined);
    const [data] = (await once(far, 'data')) as [Buffer];
    expect(data.toString()).toBe('all of it');
  });

  it('is RST where the direction is open', async () => {
    const { near, far } = await tcpPair();
    const refused = closing(far);
    far.resume();
    resetSocket(near);
    expect((await refused)?.code).toBe('ECONNRESET');
  });
});
