/**
 * A UDP tunnel: a port on 127.0.0.1 that leads to a UDP service of the device (PROTOCOL.md §12). Every local address
 * that sends there has its own flow, and the device authorizes each again.
 *
 * The specification has no UDP tunnels; the API is that of `TcpTunnel`, plus statistics.
 */

import type { Environment } from '../../platform/environment.ts';
import { checkOptions, whole } from '../../protocol/arguments.ts';
import type { Session } from '../../runtime/session/index.ts';
import { LocalTunnel } from './local-tunnel.ts';
import { UdpTunnelListener, type UdpTunnelOptions, type UdpTunnelStats } from './udp-listener.ts';

/** A local UDP port that leads to a service of the device. Created by `Connection.createUdpTunnel`. */
export class UdpTunnel {
  readonly #tunnel: LocalTunnel<UdpTunnelListener>;
  readonly #host: Pick<Environment, 'clock' | 'network'> | undefined;

  /** For `Connection.createUdpTunnel`. @param host undefined where UDP ports cannot be opened */
  constructor(session: () => Session, host: Pick<Environment, 'clock' | 'network'> | undefined) {
    this.#tunnel = new LocalTunnel(session, 'udp');
    this.#host = host;
  }

  /**
   * @param serviceId id of the service on the device
   * @param localPort port to listen on; 0 chooses a free one
   * @throws NOT_FOUND (no such service); FORBIDDEN; PORT_IN_USE; PRIVILEGED_PORT; NOT_CONNECTED; STOPPED;
   *   INVALID_ARGUMENT; INVALID_STATE when opened before; NOT_IMPLEMENTED in a browser
   */
  async open(serviceId: string, localPort = 0, options: UdpTunnelOptions = {}): Promise<void> {
    checkOptions('a UDP tunnel', options, { idleTimeout: whole(1_000), maxFlows: whole(1) });
    const host = this.#host;
    await this.#tunnel.open(
      serviceId,
      localPort,
      host &&
        (async (session, streamPort, port) => {
          const listener = await UdpTunnelListener.listen({ host }, port, options);
          listener.attach(session, streamPort);
          return listener;
        }),
    );
  }

  /** The port it listens on. @throws LocalError INVALID_STATE when it is not open */
  getLocalPort(): number {
    return this.#tunnel.listener.port;
  }

  /** Counts of flows and datagrams so far. @throws LocalError INVALID_STATE when it is not open */
  stats(): UdpTunnelStats {
    return this.#tunnel.listener.stats();
  }

  /**
   * Stops listening and ends the flows; stops an `open` under way, which throws STOPPED.
   * @throws LocalError INVALID_STATE when it is neither open nor being opened
   */
  close(): Promise<void> {
    return this.#tunnel.close();
  }
}
