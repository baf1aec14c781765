/**
 * Creates the tunnels of one device. TCP and UDP share one limit of connections, and resolve names with the device's
 * network.
 */
import type { Environment } from '../../platform/environment.ts';
import type { DatagramLoss } from '../../runtime/session/index.ts';
import { TunnelConcurrencyLimit } from './concurrency-limit.ts';
import { connectTcp } from './tcp.ts';
import { type TcpTunnelService, Tunnels, type TunnelsOptions } from './tunnels.ts';
import { UdpTunnels } from './udp.ts';

/** The other parts of the device that the tunnels use. */
export type TunnelParts = Pick<TunnelsOptions<TcpTunnelService>, 'authorization' | 'streams' | 'resources'>;

export interface DeviceTunnels {
  readonly tcp: Tunnels<TcpTunnelService>;
  readonly udp: UdpTunnels;
  readonly concurrency: TunnelConcurrencyLimit;
}

/** Creates both kinds, without services, and registers their resources. @param onLoss as in UdpTunnels */
export function createTunnels(environment: Environment, parts: TunnelParts, onLoss: (loss: DatagramLoss) => void): DeviceTunnels {
  const shared = {
    ...parts,
    concurrency: new TunnelConcurrencyLimit(),
    resolve: (host: string): Promise<string[]> => environment.network.resolve(host),
  };
  return {
    tcp: new Tunnels({ ...shared, kind: 'TCP', connect: connectTcp, extra: {} }),
    udp: new UdpTunnels(environment, shared, onLoss),
    concurrency: shared.concurrency,
  };
}
