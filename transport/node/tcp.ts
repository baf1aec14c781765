/**
 * The pump between a byte stream of a session and a TCP socket, on either end of a tunnel.
 *
 * - Each direction holds one chunk: while the other side takes nothing, nothing is read, so nothing piles up here.
 * - The end of one direction (FIN, end of stream) is passed on and the other continues.
 * - A reset, an abort or a broken connection ends both sides at once: RST on the socket, abort on the stream.
 *
 * It does not connect, listen, or check permissions.
 */
import type { Socket } from 'node:net';
import { SvcError } from '../../protocol/errors/index.ts';

/** A stream as the pump uses it; `SessionStream` is one. One read and one write are outstanding at a time. */
export interface ByteStream {
  /** Returns at least one byte. @throws SvcError END_OF_FILE after the last. */
  readSome(): Promise<Uint8Array>;
  /** Resolves when the data was accepted; the array may then be reused. */
  write(data: Uint8Array): Promise<void>;
  /** Ends our direction; resolves when everything was acknowledged. */
  close(): Promise<void>;
  /** Ends both directions at once; outstanding calls fail. */
  abort(): void;
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
 * @param signal ends both sides: pass one that fires when the session ends, because a stream that is only written to
 *   does not notice it.
 */
export async function pump(stream: ByteStream, socket: Socket, { signal }: { signal?: AbortSignal } = {}): Promise<PumpResult> {
  const broken = new AbortController();
  const stop = (error: Error): void => {
    if (broken.signal.aborted) return;
    broken.abort(error);
    stream.abort();
    resetSocket(socket);
  };
  const onSignal = () => stop(new Error('the tunnel was stopped'));
  const counts = { toSocket: 0, toStream: 0 };
  socket.allowHalfOpen = true;
  socket.setNoDelay(true);
  socket.on('error', stop);
  if (signal?.aborted === true) onSignal();
  signal?.addEventListener('abort', onSignal);
  await Promise.all([toSocket(stream, socket, counts).catch(stop), toStream(stream, socket, counts).catch(stop), closed(socket)]);
  signal?.removeEventListener('abort', onSignal);
  return { ...counts, error: broken.signal.aborted ? (broken.signal.reason as Error) : null };
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

async function toSocket(stream: ByteStream, socket: Socket, counts: { toSocket: number }): Promise<void> {
  for (;;) {
    const data = await nextChunk(stream);
    if (data === null) break;
    await written(socket, data);
    counts.toSocket += data.length;
  }
  socket.end();
}

/** Returns null at the end of the stream. */
export async function nextChunk(stream: ByteStream): Promise<Uint8Array | null> {
  try {
    return await stream.readSome();
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
function toStream(stream: ByteStream, socket: Socket, counts: { toStream: number }): Promise<void> {
  return new Promise((resolve, reject) => {
    let ended = false;
    let writing = Promise.resolve();
    const pass = async (data: Uint8Array): Promise<void> => {
      await stream.write(data);
      counts.toStream += data.length;
      socket.resume();
    };
    socket.on('data', (data: Buffer) => {
      socket.pause();
      writing = writing.then(() => pass(data));
      writing.catch(reject);
    });
    socket.once('end', () => {
      ended = true;
      writing.then(() => stream.close()).then(resolve, reject);
    });
    const onClose = () => {
      if (!ended) reject(new Error('the TCP connection was closed'));
    };
    if (socket.closed) onClose();
    else socket.once('close', onClose);
    // A server that accepts with pauseOnConnect leaves starting to us.
    socket.resume();
  });
}

function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    if (socket.closed) resolve();
    else socket.once('close', () => resolve());
  });
}
