/** `svc-connect/client` in Node: the client SDK with UDP, and TCP and UDP tunnels. */
import type { Environment } from '../platform/environment.ts';
import { nodeEnvironment } from '../platform/node/index.ts';
import { SvcClient as Client, type ClientOptions, checkClientOptions } from './svc-client.ts';
import { listenTunnel } from './tunnels/node-listener.ts';

export { type NodeEnvironmentOptions, nodeEnvironment } from '../platform/node/index.ts';
export * from './exports.ts';
export {
  type ForwardedPort,
  type ForwardedService,
  type ForwardingEvent,
  LocalPortError,
  PortForwarding,
  type PortForwardingOptions,
} from './forwarding/node-port-forwarding.ts';
export { Gateway, type GatewayOptions, type GatewayState } from './gateway/gateway.ts';

/** The client SDK in Node. */
export class SvcClient extends Client {
  /**
   * Creates a client. `environment`: default Node; it includes a log.
   * @throws LocalError INVALID_ARGUMENT for an option of a wrong type or range, or an unknown one
   */
  static create(given: { environment?: Environment } & ClientOptions = {}): SvcClient {
    checkClientOptions(given);
    const { environment = nodeEnvironment(), ...options } = given;
    return new SvcClient({ environment, listenTunnel, hasUdpPorts: true }, options);
  }
}
