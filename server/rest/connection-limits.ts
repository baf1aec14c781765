/**
 * Limits the TCP connections of the HTTP server: a share for each address, and a total. A connection above the share is
 * closed at once; above the total the oldest is closed, which must be a slow one: requests are answered in
 * milliseconds.
 *
 * Connections that may only become WebSockets have slots of their own (`kindOf`), and a WebSocket has none here.
 * Trusted proxies have no share limit: all their clients come from one address.
 */
import type { Server, Socket } from 'node:net';
import { networkOf } from '../../protocol/address.ts';
import { ConcurrencyLimit } from '../concurrency-limit.ts';

/** Connections of one address (IPv4) or /64 (IPv6), and in total, for each kind. */
export const PER_ADDRESS = 64;
export const TOTAL = 1_024;

/** Permitted uses of a connection. */
export type ConnectionKind = 'requests' | 'upgrade';

export interface ConnectionLimits {
  readonly perAddress?: number;
  readonly total?: number;
  /** Default: all are for requests and upgrades. */
  readonly kindOf?: (socket: Socket) => ConnectionKind;
  /** Connections of these addresses count only in the total. Default: none. */
  readonly isTrusted?: (address: string) => boolean;
}

/** Operations on the connections of a limited server. */
export interface LimitedConnections {
  /** Frees the slot of a connection that is now a WebSocket. */
  upgraded(socket: Socket): void;
  /**
   * Closes all connections, including those in a TLS handshake, unknown to the server, and those still to come.
   * WebSockets stay.
   */
  close(): void;
}

/** Connections of one kind. */
class ConnectionSlots {
  readonly #limit: ConcurrencyLimit;
  readonly #total: number;
  readonly #open = new Map<string, { readonly socket: Socket; readonly release: () => void }>();

  constructor(perAddress: number, total: number) {
    this.#limit = new ConcurrencyLimit({ perKey: perAddress });
    this.#total = total;
  }

  take(socket: Socket, isTrusted: boolean): void {
    const release = isTrusted ? () => {} : this.#limit.acquire(networkOf(socket.remoteAddress ?? ''));
    if (release === null) {
      socket.destroy();
      return;
    }
    const [oldest] = this.#open;
    if (this.#open.size >= this.#total && oldest !== undefined) {
      this.release(oldest[0]);
      oldest[1].socket.destroy();
    }
    const name = nameOf(socket);
    const entry = { socket, release };
    this.#open.set(name, entry);
    socket.once('close', () => {
      release();
      if (this.#open.get(name) === entry) this.#open.delete(name);
    });
  }

  release(name: string): void {
    this.#open.get(name)?.release();
    this.#open.delete(name);
  }

  destroy(): void {
    for (const { socket } of this.#open.values()) socket.destroy();
  }
}

/** Keeps the connections of a server within the limits. */
export function limitConnections(server: Server, limits: ConnectionLimits = {}): LimitedConnections {
  const { perAddress = PER_ADDRESS, total = TOTAL, kindOf = () => 'requests', isTrusted = () => false } = limits;
  const slots = { requests: new ConnectionSlots(perAddress, total), upgrade: new ConnectionSlots(perAddress, total) };
  let closing = false;
  server.on('connection', (socket: Socket) => {
    if (closing) socket.destroy();
    else slots[kindOf(socket)].take(socket, isTrusted(socket.remoteAddress ?? ''));
  });
  return {
    upgraded: (socket) => {
      for (const each of Object.values(slots)) each.release(nameOf(socket));
    },
    close: () => {
      closing = true;
      for (const each of Object.values(slots)) each.destroy();
    },
  };
}

/** Returns a name that a connection shares with the TLS socket over it. */
function nameOf({ localAddress, remoteAddress, remotePort }: Socket): string {
  return `${localAddress} ${remoteAddress} ${remotePort}`;
}
