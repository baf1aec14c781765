/**
 * A local TCP port that stays open while connections to the device come and go.
 *
 * While there is none, or it rests, local connections wait for it, some seconds and a bounded number of them; what waits in vain is reset.
 * When the connection is lost those that were carried are reset, too: what they had sent may or may not have arrived.
 */
import type { Socket } from 'node:net';
import { LocalError, RemoteError, type SvcError } from '../../protocol/errors/index.ts';
import type { Cancel, Clock } from '../../transport/environment.ts';
import { pump, resetSocket } from '../../transport/node/index.ts';
import type { Session, SessionStream } from '../../transport/session/index.ts';
import type { TunnelListener } from '../platform.ts';
import { listenTcp } from '../tunnels/node-listener.ts';

/** Our constant: local connections of one port that wait for the device. */
export const MAX_WAITING = 64;
/** Our constant, ms: how long each of them waits. */
export const WAIT = 10_000;

export interface TcpPortOptions {
  readonly clock: Clock;
  /** 0 takes a free one. */
  readonly port: number;
  /** Numeric, to listen on. */
  readonly address: string;
  /** A local connection was reset before it reached the service, for this reason: NOT_CONNECTED when it waited in vain, else what the device said. */
  readonly onRefused: (error: SvcError) => void;
}

interface Target {
  readonly session: Pick<Session, 'isOpen' | 'restReason' | 'startStream'>;
  readonly streamPort: number;
}

export class TcpPort {
  readonly #options: TcpPortOptions;
  readonly #waiting = new Map<Socket, Cancel>();
  #listener: TunnelListener | null = null;
  #closing: AbortSignal | null = null;
  #target: Target | null = null;

  /** Leads nowhere yet. @throws as `listenTcp` */
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

  /** Local connections that wait. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** From now on it leads to a stream port of the device, until the session ends; local connections that wait are carried now. */
  attach(session: Target['session'], streamPort: number): void {
    this.#target = { session, streamPort };
    this.resume();
  }

  /** The connection no longer rests: local connections that wait are carried now. */
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
    // One that is reset, or ends badly while it waits, has nobody else to tell.
    socket.on('error', () => {});
    if (this.#target?.session.isOpen === true && this.#target.session.restReason === null) this.#carry(socket, this.#target);
    else if (this.#waiting.size < MAX_WAITING) this.#wait(socket);
    else this.#refuse(socket, `${MAX_WAITING} connections wait for the device already`);
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

  /** Its first bytes travel with the opening of the stream. */
  #carry(socket: Socket, { session, streamPort }: Target): void {
    let stream: SessionStream;
    try {
      stream = session.startStream(streamPort);
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
