/**
 * Peer: `udx-native` with `@hyperswarm/secret-stream`. UDX has no handshake: the connecting end first names its stream
 * in a datagram, and repeats that until an answer arrives.
 */
import { randomInt } from 'node:crypto';
import SecretStream from '@hyperswarm/secret-stream';
import UDX from 'udx-native';
import { subject } from '../../dist/bench/processes/subject.js';
import { nodePipe, once } from './node-stream.mjs';

const REPEAT = 250;

const udx = new UDX();

subject({
  async listen(host, accepted) {
    const socket = udx.createSocket();
    socket.bind(0, host);
    const known = new Set();
    socket.on('message', (message, from) => {
      const id = message.readUInt32BE();
      if (known.has(id)) return;
      known.add(id);
      nodePipe(secret(false, socket, id, from), accepted);
    });
    return { host, port: socket.address().port };
  },

  async connect({ host, port }, received) {
    const socket = udx.createSocket();
    socket.bind(0);
    const id = randomInt(1, 2 ** 32);
    const hello = Buffer.alloc(4);
    hello.writeUInt32BE(id);
    const call = () => void socket.send(hello, port, host);
    call();
    const timer = setInterval(call, REPEAT);
    const stream = secret(true, socket, id, { host, port });
    await once(stream, 'connect');
    clearInterval(timer);
    return nodePipe(stream, () => received);
  },
});

/** Both ends use the same number for the stream. */
function secret(initiator, socket, id, { host, port }) {
  const stream = udx.createStream(id);
  stream.connect(socket, id, port, host);
  return new SecretStream(initiator, stream);
}
