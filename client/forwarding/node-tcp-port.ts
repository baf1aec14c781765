/**
 * A local TCP port that stays open while connections to the device come and go.
 *
 * While there is no connection, or it rests, a bounded number of local connections wait up to 10 s for it and are then
 * reset. When the connection is lost, the local connections it carried are reset, too: their data may
 * or may not have arrived.
 */
import type { Socket } from 'node:net';
import type { Cancel, Clock } from '../../platform/environment.ts';
import { pump, resetSocket } from '../../platform/node/index.ts';
import { LocalError, RemoteError, type SvcError } from '../../protocol/errors/index.ts';
import type { Session, Stream } from '../../runtime/session/index.ts';
import type { TunnelListener } from '../platform.ts';
import { listenTcp } from '../tunnels/node-listener.ts';

/** Our constant: local connections of one port that wait for the device. */
export const MAX_WAITING = 64;
/** Our constant: longest wait of each, ms. */
export const WAIT = 10_000;

export interface TcpPortOptions {
  readonly clock: Clock;
  /** 0 takes a free port. */
  readonly port: number;
  /** Numeric address to listen on. */
  readonly address: string;
  /**
   * A local connection was reset before it reached the service: NOT_CONNECTED when its wait timed out, else the
   * device's error.
   */
  readonly onRefused: (error: SvcError) => void;
}

interface Target {
  readonly session: Pick<Session, 'isOpen' | 'restReason' | 'streams'>;
  readonly streamPort: number;
}

export class TcpPort {
  readonly #options: TcpPortOptions;
  readonly #waiting = new Map<Socket, Cancel>();
  #listener: TunnelListener | null = null;
  #closing: AbortSignal | null = null;
  #target: Target | null = null;

  /** Listens without a target. @throws as `listenTcp` */
  static async listen(options: TcpPortOptions): Promise<TcpPort> {
    const port = new TcpPort(options);
    port.#listener = await listenTcp(options, (socket, signal) => port.#take(socket, signal));
    return port;
  }

  private constructor(options: TcpPortOptions) {
    this.#options = options;
  }

  /** The port it listens on. */
  get port(): number {
    return this.#listener?.port ?? 0;
  }

  /** Number of waiting local connections. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** Sets the device's stream port as target, until the session ends; waiting local connections are carried now. */
  attach(session: Target['session'], streamPort: number): void {
    this.#target = { session, streamPort };
    this.resume();
  }

  /** Carries waiting local connections: the connection no longer rests. */
  resume(): void {
    if (this.#target === null) return;
    for (const socket of [...this.#waiting.keys()]) {
      this.#leave(socket);
      this.#carry(socket, this.#target);
    }
  }

  /** Resets every local connection. Resolves when the port is free. */
  async close(): Promise<void> {
    this.#target = null;
    for (const socket of [...this.#waiting.keys()]) this.#reset(socket);
    await this.#listener?.close();
  }

  #take(socket: Socket, closing: AbortSignal): void {
    this.#closing = closing;
    // An error while it waits needs no report.
    socket.on('error', () => {});
    if (this.#target?.session.isOpen === true && this.#target.session.restReason === null) this.#carry(socket, this.#target);
    else if (this.#waiting.size < MAX_WAITING) this.#wait(socket);
    else this.#refuse(socket, `${MAX_WAITING} connections already wait for the device`);
  }

  #wait(socket: Socket): void {
    const cancel = this.#options.clock.schedule(WAIT, () =>
      this.#refuse(socket, `there was no connection to the device for ${WAIT / 1000} s`),
    );
    this.#waiting.set(socket, cancel);
    socket.once('close', () => this.#leave(socket));
  }

  #leave(socket: Socket): void {
    this.#waiting.get(socket)?.();
    this.#waiting.delete(socket);
  }

  #refuse(socket: Socket, reason: string): void {
    this.#reset(socket);
    this.#options.onRefused(new LocalError('NOT_CONNECTED', reason));
  }

  #reset(socket: Socket): void {
    this.#leave(socket);
    resetSocket(socket);
  }

  /** The first bytes travel with the opening of the stream. */
  #carry(socket: Socket, { session, streamPort }: Target): void {
    let stream: Stream;
    try {
      stream = session.streams.open(streamPort);
    } catch {
      // The session has just ended.
      this.#reset(socket);
      return;
    }
    stream.opened.catch((error: unknown) => {
      if (session.isOpen && error instanceof RemoteError) this.#options.onRefused(error);
    });
    void pump(stream, socket, this.#closing === null ? {} : { signal: this.#closing });
  }
}
