/**
 * Bench process: a client that connects to a device repeatedly, over one channel to the base station or as a new client
 * each time.
 */
import { get } from 'node:https';
import { type ConnectionOptions, SvcClient } from '../../client/node.ts';
import { serve } from './child.ts';

const client = SvcClient.create();
const PrivateKey = client.createPrivateKey();

/** Clients of `later`, by proof of their base station. Each keeps its channel and its proof. */
const kept = new Map<string, SvcClient>();

async function connectOnce(by: SvcClient, options: ConnectionOptions): Promise<number> {
  const connection = by.createConnection();
  connection.updateOptions({ PrivateKey, Local: false, ...options });
  const begun = performance.now();
  await connection.connect();
  const taken = performance.now() - begun;
  await connection.close();
  return taken;
}

/** Returns the mean of `count` results of `run`, with a garbage collection before each. */
async function mean(count: number, run: () => Promise<number>): Promise<number> {
  let sum = 0;
  for (let each = 0; each < count; each++) {
    globalThis.gc?.();
    sum += await run();
  }
  return sum / count;
}

serve({
  /** Connects and closes once for each element of `each`, whose options are added to `all`. */
  async connect({ all, each }: { all: ConnectionOptions; each: ConnectionOptions[] }): Promise<void> {
    for (const options of each) {
      const connection = client.createConnection();
      connection.updateOptions({ PrivateKey, Local: false, ...all, ...options });
      await connection.connect();
      await connection.close();
    }
  },

  /** Returns the mean ms of a connect by a client that has never connected. */
  first: ({ options, count }: { options: ConnectionOptions; count: number }): Promise<number> =>
    mean(count, async () => {
      const fresh = SvcClient.create();
      const taken = await connectOnce(fresh, options);
      await fresh.stop();
      return taken;
    }),

  /** Returns the mean ms of a connect by a client that has connected before. */
  async later({ options, count }: { options: ConnectionOptions; count: number }): Promise<number> {
    const by = kept.get(String(options.RootCerts)) ?? SvcClient.create();
    if (!kept.has(String(options.RootCerts))) await connectOnce(by, options);
    kept.set(String(options.RootCerts), by);
    return mean(count, () => connectOnce(by, options));
  },

  /** Returns the mean ms of a GET with a new TLS handshake. */
  get: ({ url, ca, count }: { url: string; ca: string; count: number }): Promise<number> =>
    mean(count, () => {
      const begun = performance.now();
      return new Promise<number>((resolve, reject) => {
        const request = get(url, { ca, agent: false }, (response) => response.resume().on('end', () => resolve(performance.now() - begun)));
        request.on('error', reject);
      });
    }),
});
