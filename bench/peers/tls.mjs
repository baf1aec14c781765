/** Peer: TLS 1.3 over TCP, a new session each time, with a certificate created for this run. */
import { connect, createServer } from 'node:tls';
import { subject } from '../../dist/bench/processes/subject.js';
import { selfSigned } from './certificate.mjs';
import { listening, nodePipe, once } from './node-stream.mjs';

subject({
  listen: (host, accepted) =>
    listening(
      host,
      createServer({ ...selfSigned(), minVersion: 'TLSv1.3', noDelay: true }, (socket) => nodePipe(socket, accepted)),
    ),

  async connect({ host, port }, received) {
    // No authority vouches for the certificate; verifying a chain would not change the measurement.
    const socket = connect({ host, port, minVersion: 'TLSv1.3', rejectUnauthorized: false });
    socket.setNoDelay(true);
    await once(socket, 'secureConnect');
    return nodePipe(socket, () => received);
  },
});
