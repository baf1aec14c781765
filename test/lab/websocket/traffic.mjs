/** Lab process: a TCP service that echoes its input, and a program that uses it through a port of this host. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { serve } from '../../../dist/bench/processes/child.js';

const CHUNK = 4_096;
/** ms between two chunks. */
const PACE = 20;

let running = null;

serve({
  /** @returns its port on 127.0.0.1 */
  async listen() {
    const server = createServer((socket) => socket.on('error', () => {}).pipe(socket));
    await once(server.listen(0, '127.0.0.1'), 'listening');
    return server.address().port;
  },

  /** Sends bytes and waits for them. @returns ms; fails when they differ */
  async exchange({ port, bytes }) {
    const sent = randomBytes(bytes);
    const socket = connect(port, '127.0.0.1');
    const begun = performance.now();
    socket.end(sent);
    if (!Buffer.concat(await socket.toArray()).equals(sent)) throw new Error('other bytes came back');
    return performance.now() - begun;
  },

  /** Sends chunk after chunk over one connection, each when the previous one has come back, until `end`. */
  begin({ port }) {
    running = { isEnding: false, done: run(port) };
  },

  /** @returns bytes that came back, and the longest wait for some, ms; fails when they differ */
  end() {
    running.isEnding = true;
    return running.done;
  },
});

async function run(port) {
  const socket = connect(port, '127.0.0.1');
  const arriving = socket.iterator();
  let [bytes, longest] = [0, 0];
  for (; running === null || !running.isEnding; bytes += CHUNK) {
    const sent = randomBytes(CHUNK);
    const begun = performance.now();
    socket.write(sent);
    if (!(await received(arriving)).equals(sent)) throw new Error(`wrong bytes came back after ${bytes}`);
    longest = Math.max(longest, performance.now() - begun);
    await sleep(PACE);
  }
  socket.destroy();
  return { bytes, longest };
}

async function received(arriving) {
  let chunk = Buffer.alloc(0);
  while (chunk.length < CHUNK) {
    const { value, done } = await arriving.next();
    if (done) throw new Error('the connection ended');
    chunk = Buffer.concat([chunk, value]);
  }
  return chunk;
}
