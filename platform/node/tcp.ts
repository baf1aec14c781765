/**
 * The pump between a byte stream of a session and a TCP socket, on either end of a tunnel.
 *
 * - Each direction holds one chunk: while the other side takes nothing, nothing is read, so nothing piles up here.
 * - The end of one direction (FIN, end of stream) is passed on and the other continues.
 * - A reset of either side is passed on as a reset of the other, behind what was sent before it: a server may answer,
 *   and close with unread data. So what arrived is read to its end, written, and given time to be acknowledged.
 * - The signal ends both sides at once: RST on the socket, abort on the stream.
 * - A peer of the socket that is gone counts as a reset: the system probes a silent connection. So a program that has
 *   closed both directions leaves within minutes, even if the other side never ends its own; one that waits for an
 *   answer stays.
 *
 * It does not connect, listen, or check permissions.
 */
import type { Socket } from 'node:net';
import { SvcError } from '../../protocol/errors/index.ts';
import { unsentBytes } from './unsent-bytes.ts';

/** Longest time without progress that a reset waits for the bytes before it, ms. */
export const LINGER = 5_000;
/** Between two looks at that progress, ms: at first, and at last. */
const FIRST_LOOK = 2;
const LAST_LOOK = 100;
/** Silence of a socket after which the system probes it, and time between two looks at one that has ended, ms. */
const KEEP_ALIVE = 60_000;
const NOTHING = new Uint8Array(0);

/** A byte stream as the pump uses it; `Stream` is one. One read and one write are outstanding at a time. */
export interface ByteStream {
  /** Settles when the peer has accepted or refused a stream that we opened. */
  readonly opened?: Promise<void>;
  /** Returns at least one byte. @throws SvcError END_OF_FILE after the last; another SvcError after a reset. */
  read(): Promise<Uint8Array>;
  /** Resolves when the data was accepted; the array may then be reused. @throws SvcError */
  write(data: Uint8Array): Promise<void>;
  /** Ends our direction; resolves when everything was acknowledged. */
  close(): Promise<void>;
  /** Ends both directions at once; outstanding calls fail. */
  abort(): void;
  /** Bytes of our direction: those that are acknowledged, and those that wait for it; null once there are none. */
  stats(): { readonly transport: { readonly acknowledged: number; readonly buffered: number } | null };
  /** The pump sets it; called when our direction ends before its end was acknowledged. */
  onStopped?: ((error: SvcError) => void) | null;
}

/** Result of a pump: bytes passed on, and how it ended. */
export interface PumpResult {
  /** Bytes passed on, stream → socket and socket → stream. */
  readonly toSocket: number;
  readonly toStream: number;
  /** Why it ended early; null when both directions ended regularly. */
  readonly error: Error | null;
}

/**
 * Runs until both directions have ended or either side broke, and leaves both closed. Never rejects.
 * @param signal ends both sides
 */
export async function pump(stream: ByteStream, socket: Socket, { signal }: { signal?: AbortSignal } = {}): Promise<PumpResult> {
  const stopped = new AbortController();
  const isOver = { up: false, down: false };
  const counts = { toSocket: 0, toStream: 0 };
  let reason: Error | null = null;
  const stop = (error: Error): void => {
    if (stopped.signal.aborted) return;
    reason ??= error;
    stopped.abort();
    stream.abort();
    resetSocket(socket);
  };
  const over = async (error: Error): Promise<void> => {
    reason ??= error;
    // What the broken side sent before it broke is passed on, to the last byte.
    if (error instanceof SvcError) {
      await whileMoving(async () => {
        const unsent = await unsentBytes(socket);
        return isOver.down && unsent === 0 ? null : `${counts.toSocket} ${unsent}`;
      }, stopped.signal);
    } else await acknowledged(stream, { isOver: () => isOver.up, signal: stopped.signal });
    stop(error);
  };
  const onSignal = () => stop(new Error('the tunnel was stopped'));
  socket.allowHalfOpen = true;
  socket.setNoDelay(true);
  socket.setKeepAlive(true, KEEP_ALIVE);
  socket.on('error', over);
  stream.onStopped = over;
  const writes = separateWrites(socket, over);
  const down = toSocket(stream, socket, counts, writes).finally(() => {
    isOver.down = true;
  });
  const up = toStream(stream, socket, counts, writes).finally(() => {
    isOver.up = true;
  });
  if (signal?.aborted === true) onSignal();
  signal?.addEventListener('abort', onSignal);
  await Promise.all([down.catch(over), up.catch(over), closed(socket)]);
  signal?.removeEventListener('abort', onSignal);
  return { ...counts, error: reason };
}

/**
 * Resolves when the peer has everything that was written to a stream, or when nothing has moved for 5 s.
 * @param isOver whether nothing more will be written
 */
export async function acknowledged(
  stream: ByteStream,
  { isOver = () => true, signal }: { readonly isOver?: () => boolean; readonly signal?: AbortSignal } = {},
): Promise<void> {
  // Data may be acknowledged, and lost with a refusal.
  let isAnswered = stream.opened === undefined;
  const onAnswer = () => {
    isAnswered = true;
  };
  void stream.opened?.then(onAnswer, onAnswer);
  await whileMoving(() => {
    const figures = stream.stats().transport;
    const isAll = isOver() && (figures === null || (figures.buffered === 0 && isAnswered));
    return isAll ? null : `${figures?.acknowledged} ${figures?.buffered}`;
  }, signal);
}

/** Resolves when `progress` returns null, or the same text for 5 s. */
async function whileMoving(progress: () => string | null | Promise<string | null>, signal?: AbortSignal): Promise<void> {
  let [seen, since]: [string | null, number] = [null, 0];
  for (let wait = FIRST_LOOK; ; wait = Math.min(2 * wait, LAST_LOOK)) {
    const now = await progress();
    if (now === null || signal?.aborted === true) return;
    if (now !== seen) [seen, since] = [now, performance.now()];
    else if (performance.now() - since >= LINGER) return;
    await new Promise((resolve) => void setTimeout(resolve, wait));
  }
}

/** Why writing failed; null while it has not. */
interface Writes {
  error: Error | null;
}

/**
 * Makes a failed write end that direction alone. A peer that answers and closes with unread data resets the connection:
 * the next write fails, and Node would destroy the socket with the answer still unread in the kernel.
 */
function separateWrites(socket: Socket, onFailed: (error: Error) => void): Writes {
  const writes: Writes = { error: null };
  const once = (done: (error?: Error | null) => void) => (error?: Error | null) => {
    // A socket that is destroyed has nothing left to read.
    if (error && !socket.destroyed && writes.error === null) {
      writes.error = error;
      onFailed(error);
    }
    done(socket.destroyed ? error : null);
  };
  const { _write, _writev } = socket;
  socket._write = (chunk, encoding, done) => _write.call(socket, chunk, encoding, once(done));
  if (_writev !== undefined) socket._writev = (chunks, done) => _writev.call(socket, chunks, once(done));
  return writes;
}

/**
 * Ends a socket at once, with RST where possible. While Node shuts its direction down a reset fails (EINVAL,
 * `uv_tcp_close_reset`), and would leave the socket open for ever, and the process spinning at its end; the kernel has
 * all data by then, so a plain close loses nothing.
 */
export function resetSocket(socket: Socket): void {
  const isShuttingDown = socket.writableEnded && !socket.writableFinished && socket.writableLength === 0;
  if (isShuttingDown) socket.destroy();
  else socket.resetAndDestroy();
}

async function toSocket(stream: ByteStream, socket: Socket, counts: { toSocket: number }, writes: Writes): Promise<void> {
  for (;;) {
    const data = await nextChunk(stream);
    if (data === null) break;
    await written(socket, data);
    if (writes.error !== null) throw writes.error;
    counts.toSocket += data.length;
  }
  socket.end();
}

/** Returns null at the end of the stream. */
export async function nextChunk(stream: ByteStream): Promise<Uint8Array | null> {
  try {
    return await stream.read();
  } catch (error) {
    if (error instanceof SvcError && error.code === 'END_OF_FILE') return null;
    throw error;
  }
}

/** Resolves when the socket wants more, rejects when it is gone. */
function written(socket: Socket, data: Uint8Array): Promise<void> | undefined {
  if (socket.write(data) && !socket.destroyed) return undefined;
  return new Promise((resolve, reject) => {
    const settle = () => {
      socket.removeListener('drain', settle).removeListener('close', settle);
      if (socket.destroyed) reject(new Error('the TCP connection was closed'));
      else resolve();
    };
    if (socket.destroyed) settle();
    else socket.once('drain', settle).once('close', settle);
  });
}

/** Resolves when the socket's peer has ended its direction and the stream has acknowledged everything. */
function toStream(stream: ByteStream, socket: Socket, counts: { toStream: number }, writes: Writes): Promise<void> {
  return new Promise((resolve, reject) => {
    let ended = false;
    let writing = Promise.resolve();
    const pass = async (data: Uint8Array): Promise<void> => {
      await stream.write(data);
      counts.toStream += data.length;
      // The buffer of a destroyed socket would flow away.
      if (!socket.destroyed) socket.resume();
    };
    const onData = (data: Buffer) => {
      socket.pause();
      writing = writing.then(() => pass(data));
      writing.catch(reject);
    };
    socket.on('data', onData);
    socket.once('end', () => {
      ended = true;
      // libuv no longer watches a socket that has ended, and would not see that a probe was answered with RST.
      const looking = setInterval(showReset, KEEP_ALIVE, socket).unref();
      socket.once('close', () => clearInterval(looking));
      const end = async () => {
        showReset(socket);
        await new Promise((resolve) => setImmediate(resolve));
        if (writes.error !== null) throw writes.error;
        await stream.close();
      };
      writing.then(end).then(resolve, reject);
    });
    const onClose = () => {
      if (ended) return;
      // Node destroys a socket that was reset while bytes wait in its buffer.
      socket.removeListener('data', onData);
      for (let rest = socket.read(); rest !== null; rest = socket.read()) onData(rest);
      writing.then(() => reject(new Error('the TCP connection was closed')), reject);
    };
    if (socket.closed) onClose();
    else socket.once('close', onClose);
    // A server that accepts with pauseOnConnect leaves starting to us.
    socket.resume();
  });
}

/**
 * Lets a write fail on a socket that was reset. libuv reports a reset behind data that it has just read as the end
 * (`uv__stream_io`, POLLHUP); the kernel reports it to the next write, be it empty.
 */
function showReset(socket: Socket): void {
  if (socket.writable && socket.writableLength === 0) socket.write(NOTHING);
}

function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    if (socket.closed) resolve();
    else socket.once('close', () => resolve());
  });
}
