/**
 * Lab process in the core: says what it sees of a datagram, and sends from other places when it is asked to. It listens at two ports of each address.
 * A datagram is JSON, `{id, from?: [[address, port], …]}`; the answer `{id, seen: [address, port], at: [address, port]}` comes from where it was sent to, and
 * in place of it one from each place in `from`.
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
