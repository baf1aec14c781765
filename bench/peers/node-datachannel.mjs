/**
 * Peer: a WebRTC data channel of `node-datachannel`. Descriptions and candidates travel over a TCP connection, which is
 * part of the measured set-up.
 */
import { connect, createServer } from 'node:net';
import { createInterface } from 'node:readline';
import { PeerConnection } from 'node-datachannel';
import { subject } from '../../dist/bench/processes/subject.js';
import { listening, once } from './node-stream.mjs';

/** Bytes that may wait in the channel, and the level below which it accepts more. */
const HIGH = 4 * 1024 * 1024;
const LOW = 1024 * 1024;
const MESSAGE = 64 * 1024;

/** Connections in use, which would otherwise be garbage-collected. */
const alive = new Set();

subject({
  listen: (host, accepted) =>
    listening(
      host,
      createServer({ noDelay: true }, (signalling) => {
        const connection = peer('listener', host, signalling);
        connection.onDataChannel((channel) => pipe(connection, channel, accepted));
      }),
    ),

  async connect({ host, port }, received) {
    const signalling = connect({ host, port, noDelay: true });
    await once(signalling, 'connect');
    const connection = peer('dialer', signalling.localAddress, signalling);
    const channel = connection.createDataChannel('bench');
    await new Promise((resolve) => channel.onOpen(resolve));
    return pipe(connection, channel, () => received);
  },
});

function peer(name, bindAddress, signalling) {
  const connection = new PeerConnection(name, { iceServers: [], bindAddress });
  alive.add(connection);
  const signal = (message) => signalling.write(`${JSON.stringify(message)}\n`);
  connection.onLocalDescription((sdp, type) => signal({ sdp, type }));
  connection.onLocalCandidate((candidate, mid) => signal({ candidate, mid }));
  createInterface({ input: signalling }).on('line', (line) => {
    const { sdp, type, candidate, mid } = JSON.parse(line);
    if (sdp === undefined) connection.addRemoteCandidate(candidate, mid);
    else connection.setRemoteDescription(sdp, type);
  });
  signalling.on('error', () => signalling.destroy());
  return connection;
}

function pipe(connection, channel, accepted) {
  let drained = null;
  channel.setBufferedAmountLowThreshold(LOW);
  channel.onBufferedAmountLow(() => drained?.());
  const send = async (data) => {
    for (let at = 0; at < data.length; at += MESSAGE) channel.sendMessageBinary(data.subarray(at, at + MESSAGE));
    while (channel.bufferedAmount() > HIGH) await new Promise((resolve) => (drained = resolve));
  };
  const close = () => {
    alive.delete(connection);
    connection.close();
  };
  const pipe = { send, close };
  const received = accepted(pipe);
  channel.onMessage((message) => received(typeof message === 'string' ? Buffer.from(message) : new Uint8Array(message)));
  return pipe;
}
