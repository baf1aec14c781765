/** Peer: plain TCP, without encryption. */
import { connect, createServer } from 'node:net';
import { subject } from '../../dist/bench/processes/subject.js';
import { listening, nodePipe, once } from './node-stream.mjs';

subject({
  listen: (host, accepted) =>
    listening(
      host,
      createServer({ noDelay: true }, (socket) => nodePipe(socket, accepted)),
    ),

  async connect({ host, port }, received) {
    const socket = connect({ host, port, noDelay: true });
    await once(socket, 'connect');
    return nodePipe(socket, () => received);
  },
});
