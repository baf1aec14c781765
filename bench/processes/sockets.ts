/**
 * Bench process: opening the sockets of a sprayed stage, as an attempt does it, or as many bare ones of Node; and their
 * memory.
 */
import { createSocket, type Socket } from 'node:dgram';
import { nodeEnvironment } from '../../platform/node/index.ts';
import { Host } from '../../runtime/host/index.ts';
import { FurtherSockets } from '../../runtime/rendezvous/further-sockets.ts';
import { type RendezvousHost, rendezvousHost } from '../../runtime/rendezvous/index.ts';
import { serve } from './child.ts';

const environment = nodeEnvironment();
let host: RendezvousHost | null = null;

serve({
  /** Opens sockets like an attempt. Returns the milliseconds, and the bytes by which the process has grown. */
  async ours({ count }: { count: number }) {
    host ??= await open();
    const before = resident();
    const sockets = new FurtherSockets(host, () => {});
    const start = performance.now();
    const { length } = await sockets.open(count);
    const time = performance.now() - start;
    const bytes = resident() - before;
    sockets.close();
    if (length !== count) throw new Error(`${length} of ${count} sockets were opened`);
    return { time, bytes };
  },

  /** The same with bare sockets. */
  async bare({ count }: { count: number }) {
    const before = resident();
    const start = performance.now();
    const sockets = await Promise.all(Array.from({ length: count }, bound));
    const time = performance.now() - start;
    const bytes = resident() - before;
    for (const socket of sockets) socket.close();
    return { time, bytes };
  },
});

async function open(): Promise<RendezvousHost> {
  const identity = environment.crypto.generateKey();
  return rendezvousHost(await Host.open(environment, { identity, binds: [{ port: 0, host: '127.0.0.1' }] }));
}

function bound(): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = createSocket('udp4');
    socket.once('error', reject);
    socket.bind(0, '0.0.0.0', () => resolve(socket));
  });
}

/** Returns the resident bytes after a collection. */
function resident(): number {
  globalThis.gc?.();
  return process.memoryUsage.rss();
}
