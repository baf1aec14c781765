/**
 * Bench process: one end of many idle connections of the transport, without a product. One process listens, another
 * connects. Each connection has carried a request and its answer.
 */

import { nodeEnvironment } from '../../platform/node/index.ts';
import { Router } from '../../protocol/coap/index.ts';
import { Host } from '../../runtime/host/index.ts';
import type { Session } from '../../runtime/session/index.ts';
import { serve } from './child.ts';

interface Address {
  readonly port: number;
  readonly fingerprint: string;
}

const NAME = 'device';
const PATH = '/figure';
const CONTENT = 205;
const PAYLOAD = new TextEncoder().encode('21.5');
/** Concurrent handshakes: more would get a Retry. */
const TOGETHER = 8;
/** Collections before a sample: a later one returns the pages that an earlier one has emptied. */
const COLLECTIONS = 5;

const environment = nodeEnvironment();
let host: Host;

serve({
  async listen({ connections }: { connections: number }): Promise<Address> {
    const router = new Router<Session>().on('GET', PATH, () => ({ status: CONTENT, payload: PAYLOAD }));
    host = await open(connections, { responder: () => [NAME], router, acceptStreams: true });
    return { port: host.sockets.bound[0]?.port ?? 0, fingerprint: host.fingerprint };
  },

  /** Opens `count` more connections, which stay open. */
  async connect({ address, count, connections }: { address: Address; count: number; connections: number }) {
    host ??= await open(connections);
    for (let made = 0; made < count; made += TOGETHER) {
      await Promise.all(Array.from({ length: Math.min(TOGETHER, count - made) }, () => one(address)));
    }
  },

  /** Returns the resident bytes after several collections. */
  async resident() {
    for (let turn = 0; turn < COLLECTIONS; turn++) {
      globalThis.gc?.();
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    return process.memoryUsage.rss();
  },
});

async function one({ port, fingerprint }: Address): Promise<void> {
  const session = await host.dials.connect({ address: '127.0.0.1', port, name: NAME, pin: fingerprint, timeout: 30_000 });
  const { status } = await session.request({ method: 'GET', path: PATH });
  if (status !== CONTENT) throw new Error(`status ${status}`);
}

function open(connections: number, more: Partial<Parameters<typeof Host.open>[1]> = {}): Promise<Host> {
  return Host.open(environment, {
    identity: environment.crypto.generateKey(),
    binds: [{ port: 0, host: '127.0.0.1' }],
    limits: { connections },
    core: { connections },
    ...more,
  });
}
