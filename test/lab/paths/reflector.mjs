/**
 * Lab process in the core: reports the source of a datagram as seen here, and sends from other places on request. It
 * listens at two ports of each address. A datagram is JSON, `{id, from?: [[address, port], …]}`. The answer `{id, seen:
 * [address, port], at: [address, port]}` comes from where the datagram was sent to; with `from`, one answer comes from
 * each of those places instead.
 */
import { createSocket } from 'node:dgram';
import { serve } from '../../../dist/bench/processes/child.js';

const sockets = new Map();

serve({
  listen: ({ addresses, ports }) => Promise.all(addresses.flatMap((address) => ports.map((port) => open(address, port)))).then(() => true),
});

function open(address, port) {
  const socket = createSocket(address.includes(':') ? 'udp6' : 'udp4');
  sockets.set(`${address} ${port}`, socket);
  socket.on('error', () => {});
  socket.on('message', (message, source) => {
    const { id, from = [[address, port]] } = JSON.parse(message);
    for (const at of from) {
      const answer = JSON.stringify({ id, seen: [source.address, source.port], at });
      sockets.get(at.join(' ')).send(answer, source.port, source.address);
    }
  });
  return new Promise((resolve) => socket.bind(port, address, resolve));
}
