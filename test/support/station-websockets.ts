/** WebSockets to a simulated host in the role of a base station: each becomes a socket of its host. */
import type { Host } from '../../runtime/host/index.ts';
import { WebSocketSocket } from '../../runtime/websocket/index.ts';
import type { SimulatedHost, WebSocketListenOptions } from '../../testing/index.ts';

/** Accepts them from now on. */
export function acceptWebSockets(environment: SimulatedHost, host: Host, options: Pick<WebSocketListenOptions, 'port' | 'secure'>): void {
  environment.listenWebSocket({
    ...options,
    protocol: 'svc.1',
    path: '/svc/v1',
    accept: (pipe) => {
      const socket = new WebSocketSocket(pipe, {
        clock: environment.clock,
        receive: host.datagrams.receive,
        closed: (error) => host.sockets.drop(socket, error),
      });
      host.sockets.adopt(socket);
      return { receive: (message) => socket.deliver(message), closed: (error) => socket.ended(error) };
    },
  });
}
