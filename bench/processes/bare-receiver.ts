/** Bench process: receives datagrams and counts their bytes, with nothing around it. */
import { createSocket } from 'node:dgram';
import { setTimeout } from 'node:timers/promises';
import { serve } from './child.ts';

/**
 * Milliseconds without a datagram after which the socket is empty. Megabytes wait there if the receiver is slower than
 * the sender.
 */
const QUIET = 50;

let bytes = 0;
let first = 0;
let last = 0;

serve({
  bind: () =>
    new Promise<number>((resolve, reject) => {
      const socket = createSocket({ type: 'udp4', recvBufferSize: 8 << 20 });
      socket.once('error', reject);
      socket.on('message', (message) => {
        last = performance.now();
        if (bytes === 0) first = last;
        bytes += message.length;
      });
      socket.bind(0, '127.0.0.1', () => resolve(socket.address().port));
    }),

  /** Returns megabytes per second between the first and the last datagram since the last call, once no more arrive. */
  async rate() {
    for (let known = -1; known !== bytes; await setTimeout(QUIET)) known = bytes;
    const rate = bytes / 1000 / (last - first);
    bytes = 0;
    return rate;
  },
});
