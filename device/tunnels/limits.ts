import type { Limits } from '../../protocol/limits.ts';
import { CAPACITY } from './concurrency-limit.ts';
import { FLOWS_PER_CLIENT, IDLE_TIMEOUT } from './udp.ts';

export const device: Limits = {
  'Connections to services of all tunnels, TCP and UDP': {
    value: CAPACITY,
    unit: '#, of one client as many as are free',
    setting:
      '`limitTunnelConnections`, `limitTunnelConnectionsPerClient`, `maxConnections` of a service; `svc device --tunnel-connections`, ' +
      '`--tunnel-connections-per-client`',
    filledBy: 'clients with permission',
    next:
      'Another client: a connection, until ten of them hold all; with a limit for each client, until those it allows hold all. Then ' +
      'TUNNEL_LIMIT, which the local program sees as a reset. File descriptors for everything else are left.',
    freedWhen:
      'The connection or flow ends, or the permission; a silent TCP connection whose program or service is gone, also with one ' +
      'direction ended: after two minutes or so',
    test: ['test/device/tunnels/lifecycle.test.ts', 'test/platform/node/tcp.test.ts'],
  },
  'TCP tunnel connections of one type': {
    unit: 'no limit but that of all tunnels',
    setting: '`limitTcpTunnelConnections`',
    filledBy: 'clients with permission',
    next: 'Refused with TUNNEL_LIMIT: the local program sees a reset. Others keep nothing.',
    freedWhen: 'The connection ends, or the permission',
    test: 'test/device/tunnels/tcp.test.ts',
  },
  'UDP flows of one type': {
    value: IDLE_TIMEOUT,
    unit: 'no limit but that of all tunnels',
    setting: '`limitUdpTunnelFlows`',
    protocol: 'idle flow of a UDP tunnel',
    filledBy: 'clients with permission',
    next: 'Refused with TUNNEL_LIMIT; others keep nothing',
    freedWhen: 'The flow ends; #s without a datagram (`idleTimeout` of the service)',
    test: 'test/client/tunnels/udp.test.ts',
  },
  'UDP flows of one connection': {
    value: FLOWS_PER_CLIENT,
    setting: '`limitUdpTunnelFlowsPerConnection`',
    filledBy: 'that client',
    next: 'Refused with TUNNEL_LIMIT on that connection. Others have their own.',
    freedWhen: 'As above',
    test: 'test/client/tunnels/udp.test.ts',
  },
};
