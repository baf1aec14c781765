/**
 * A TCP tunnel: a port on 127.0.0.1 that leads to a TCP service of the device, in the specification's form. It opens a
 * stream to the service's port for every TCP connection, and the device authorizes each again.
 */
import type { Session } from '../../runtime/session/index.ts';
import type { ListenTunnel, TunnelListener } from '../platform.ts';
import { LocalTunnel } from './local-tunnel.ts';

/** A local TCP port that leads to a service of the device. Created by `Connection.createTcpTunnel`. */
export class TcpTunnel {
  readonly #tunnel: LocalTunnel<TunnelListener>;
  readonly #listen: ListenTunnel | undefined;

  /** For `Connection.createTcpTunnel`. */
  constructor(session: () => Session, listen: ListenTunnel | undefined) {
    this.#tunnel = new LocalTunnel(session, 'tcp');
    this.#listen = listen;
  }

  /**
   * @param serviceId id of the service on the device
   * @param localPort port to listen on; 0 chooses a free one
   * @throws NOT_FOUND (no such service); FORBIDDEN; PORT_IN_USE; PRIVILEGED_PORT; NOT_CONNECTED; STOPPED;
   *   INVALID_ARGUMENT; INVALID_STATE when opened before; NOT_IMPLEMENTED in a browser
   */
  open(serviceId: string, localPort = 0): Promise<void> {
    const listen = this.#listen;
    return this.#tunnel.open(
      serviceId,
      localPort,
      listen && ((session, streamPort, port) => listen(port, () => session.streams.open(streamPort))),
    );
  }

  /** The port it listens on. @throws LocalError INVALID_STATE when it is not open */
  getLocalPort(): number {
    return this.#tunnel.listener.port;
  }

  /**
   * Stops listening and ends the TCP connections; stops an `open` under way, which throws STOPPED.
   * @throws LocalError INVALID_STATE when it is neither open nor being opened
   */
  close(): Promise<void> {
    return this.#tunnel.close();
  }
}
