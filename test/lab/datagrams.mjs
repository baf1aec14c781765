/** Lab process: datagrams there and back, to test a link. */
import { createSocket } from 'node:dgram';
import { serve } from '../../dist/bench/processes/child.js';

/** ms to wait for the last ones to come back. */
const PATIENCE = 400;

serve({
  /** Echoes all datagrams. @returns its port */
  listen: ({ host }) =>
    new Promise((resolve) => {
      const socket = createSocket('udp4');
      socket.on('message', (message, { port, address }) => socket.send(message, port, address));
      socket.bind(0, host, () => resolve(socket.address().port));
    }),

  /**
   * Round-trip times in ms and numbers of the datagrams that came back, in order of arrival. All are sent at once, or
   * one every `interval` ms.
   */
  async ping({ host, port, count, size, interval = 0 }) {
    const socket = createSocket('udp4');
    const sent = [];
    const [times, numbers] = [[], []];
    socket.on('message', (message) => {
      const number = message.readUInt32BE();
      numbers.push(number);
      times.push(performance.now() - sent[number]);
    });
    for (let index = 0; index < count; index++) {
      const message = Buffer.alloc(size);
      message.writeUInt32BE(index);
      sent.push(performance.now());
      socket.send(message, port, host);
      if (interval > 0) await sleep(interval);
    }
    await sleep(PATIENCE);
    socket.close();
    return { times, numbers };
  },
});

function sleep(milliseconds) {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
