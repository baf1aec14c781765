/**
 * The parts of a host that the rendezvous needs: the socket of its connections, sending beside the engine, receiving
 * datagrams before it, and adopting a further socket.
 */

import type { BoundSocket, Environment } from '../../platform/environment.ts';
import type { Path } from '../../protocol/path.ts';
import type { Interceptor } from '../driver.ts';
import type { Host } from '../host/index.ts';

export interface RendezvousHost {
  readonly environment: Pick<Environment, 'clock' | 'crypto' | 'network' | 'log'>;
  /**
   * The socket that station and peers know, and that candidates name. It may be another one after a change of network.
   */
  readonly socket: BoundSocket;
  /** @returns false when the datagram was dropped */
  send(datagram: Uint8Array, path: Path, hopLimit?: number): boolean;
  intercept(interceptor: Interceptor): () => void;
  /** Adopts a socket. @returns the receiver of its datagrams */
  adopt(socket: BoundSocket): (datagram: Uint8Array, path: Path) => void;
  /** Closes an adopted socket, with the paths on it. */
  release(socket: BoundSocket): void;
}

export function rendezvousHost(host: Host): RendezvousHost {
  return {
    environment: host.environment,
    get socket() {
      return host.sockets.bound[0]!;
    },
    send: (datagram, path, hopLimit) => host.datagrams.send(datagram, path, hopLimit),
    intercept: (interceptor) => host.datagrams.intercept(interceptor),
    adopt: (socket) => host.sockets.adopt(socket),
    release: (socket) => void host.sockets.unbind(socket),
  };
}
