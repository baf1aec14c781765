/**
 * The platform of a client: the environment that every product needs, and on Node listeners for tunnels.
 * `node.ts` and `browser.ts` provide it; the rest of this folder does not depend on the platform.
 */
import type { Environment } from '../platform/environment.ts';
import type { Stream } from '../runtime/session/index.ts';

export interface ClientPlatform {
  readonly environment: Environment;
  /** Absent where TCP ports cannot be opened (a browser). */
  readonly listenTunnel?: ListenTunnel;
  /** True where the environment's network has ports that other programs of the host can reach. */
  readonly hasUdpPorts?: boolean;
}

/**
 * Listens on 127.0.0.1:`port` (0 = any free one). Calls `startStream` for every TCP connection and carries it over the
 * stream, half closes included; when it throws or the stream is refused, the TCP connection is reset.
 * @throws LocalError PORT_IN_USE, PRIVILEGED_PORT
 */
export type ListenTunnel = (port: number, startStream: () => Stream) => Promise<TunnelListener>;

export interface TunnelListener {
  /** The port it listens on. */
  readonly port: number;
  /** Stops listening and resets open TCP connections. Resolves when the port is free. */
  close(): Promise<void>;
}
