/**
 * The demo's client: its own process, which holds one connection to the device and executes calls received over IPC.
 *
 * A message `{ id, call, arguments }` names one of the calls below; the answer is `{ id, result }` or `{ id, error }`.
 * It checks nothing.
 */
import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { type Connection, type ConnectionOptions, nodeEnvironment, type PathReport, SvcClient, type TcpTunnel } from '../../client/node.ts';
import { downloadFile, openFile, uploadFile, uploadOpened } from '../files/transfer.ts';
import { uplinksOf } from './uplinks.ts';

/** ms between the chunks of a transfer that waits for its direct path. */
const PAUSE = 10;

const environment = nodeEnvironment();
const client = SvcClient.create({ environment });
let connection: Connection | null = null;
let tunnel: TcpTunnel | null = null;

const calls = {
  /** Opens a new connection; the key is read from a file. */
  async connect(options: ConnectionOptions, keyFile: string) {
    const next = client.createConnection();
    next.updateOptions({ ...options, PrivateKey: await readFile(keyFile, 'utf8') });
    await next.connect();
    connection = next;
    return { type: next.getType(), verified: next.verified };
  },

  async coap(method: string, path: string, payload?: string) {
    return request(live(), method, path, payload);
  },

  async upload(file: string, name: string) {
    return uploadFile(live(), file, name);
  },

  async download(name: string, file: string) {
    return downloadFile(live(), name, file);
  },

  /** Sends `count` requests one after the other while `file` is uploaded repeatedly. Latencies in milliseconds. */
  async requestsUnderBulk(count: number, path: string, file: string) {
    const on = live();
    let bytes = 0;
    let done = false;
    const bulk = (async () => {
      while (!done) bytes += (await uploadFile(on, file, 'bulk')).bytes;
    })();
    const latencies: number[] = [];
    let wrong = 0;
    for (let index = 0; index < count; index++) {
      const start = performance.now();
      const { status } = await request(on, 'GET', path);
      latencies.push(performance.now() - start);
      if (status !== 205) wrong += 1;
    }
    done = true;
    await bulk;
    return { latencies, wrong, bytes };
  },

  /** Names of this machine's interfaces, without loopback. */
  async interfaces() {
    return (environment.network.interfaces?.() ?? []).map(({ name }) => name);
  },

  /**
   * Uploads a file over its own connection, which begins relayed. The transfer is slow until the connection is direct,
   * and pauses halfway until the path has changed, or for `patience` ms.
   */
  async uploadAcrossPaths(options: ConnectionOptions, keyFile: string, file: { path: string; name: string }, patience: number) {
    const own = client.createConnection();
    own.updateOptions({ ...options, PrivateKey: await readFile(keyFile, 'utf8') });
    const source = await openFile(file.path);
    try {
      await own.connect();
      const began = performance.now();
      const first = activeOf(own).over;
      const sentBefore = bytesSent(own);
      let change: { readonly bytes: number; readonly ms: number } | undefined;
      own.on('path', ({ kind }) => {
        if (kind === 'direct') change ??= { bytes: bytesSent(own) - sentBefore, ms: performance.now() - began };
      });
      const waits = (): boolean => change === undefined && performance.now() - began < patience;
      const pace = async (done: number): Promise<void> => {
        if (waits()) await delay(PAUSE);
        while (waits() && done >= source.size / 2) await delay(PAUSE);
      };
      const { bytes, sha256 } = await uploadOpened(own, source, file.name, { pace });
      return { bytes, sha256, first, last: activeOf(own), change: change ?? null, why: own.paths().whyNotDirect };
    } finally {
      await source.handle.close();
      await own.close();
    }
  },

  async openTunnel(service: string) {
    tunnel = live().createTcpTunnel();
    await tunnel.open(service, 0);
    return { port: tunnel.getLocalPort() };
  },

  async closeTunnel() {
    await tunnel?.close();
    tunnel = null;
  },

  /**
   * Uploads a file over its own connection, the first half from the first address of this host, the rest from the
   * second.
   */
  async uploadAcrossUplinks(
    options: ConnectionOptions,
    keyFile: string,
    file: { path: string; name: string },
    addresses: [string, string],
  ) {
    const uplinks = uplinksOf(environment, addresses[0]);
    const own = SvcClient.create({ environment: uplinks.environment });
    const on = own.createConnection();
    on.updateOptions({ ...options, PrivateKey: await readFile(keyFile, 'utf8') });
    const source = await openFile(file.path);
    let changes = 0;
    on.on('path', () => changes++);
    try {
      await on.connect();
      const timed = pauses();
      const pace = async (done: number): Promise<void> => {
        await timed.pace();
        if (done >= source.size / 2) uplinks.use(addresses[1]);
      };
      const { bytes, sha256 } = await uploadOpened(on, source, file.name, { pace });
      return { bytes, sha256, changes, pause: timed.longest };
    } finally {
      await source.handle.close();
      await own.stop();
    }
  },

  /**
   * Uploads a file with pauses, so that it takes seconds. Returns the longest time without progress, ms, and how often
   * the connection had no path.
   */
  async uploadSlowly(path: string, name: string) {
    const on = live();
    const source = await openFile(path);
    const restsBefore = on.stats().rests ?? 0;
    const timed = pauses();
    try {
      const { bytes, sha256 } = await uploadOpened(on, source, name, { pace: timed.pace });
      return { bytes, sha256, pause: timed.longest, rests: (on.stats().rests ?? 0) - restsBefore };
    } finally {
      await source.handle.close();
    }
  },

  async close() {
    await connection?.close();
    connection = null;
  },
};

/** The calls as seen by the other process. */
export type DemoClientCalls = typeof calls;

process.on('message', (message: { id: number; call: keyof DemoClientCalls; arguments: never[] }) => {
  const call = calls[message.call] as (...given: never[]) => Promise<unknown>;
  call(...message.arguments).then(
    (result) => process.send?.({ id: message.id, result }),
    (error: Error & { code?: string }) => process.send?.({ id: message.id, error: `${error.code ?? 'ERROR'}: ${error.message}` }),
  );
});
process.on('disconnect', () => process.exit(0));
process.on('SIGTERM', () => {
  void client.stop().then(() => process.exit(0));
});

/** Slows a transfer down, and records the longest time without progress, ms. */
function pauses(): { readonly longest: number; readonly pace: () => Promise<void> } {
  let [last, longest] = [performance.now(), 0];
  const pace = async (): Promise<void> => {
    longest = Math.max(longest, performance.now() - last);
    await delay(PAUSE);
    last = performance.now();
  };
  return {
    pace,
    get longest() {
      return longest;
    },
  };
}

function live(): Connection {
  if (connection === null) throw new Error('not connected');
  return connection;
}

function activeOf(on: Connection): PathReport {
  return on.paths().paths.find(({ active }) => active) as PathReport;
}

function bytesSent(on: Connection): number {
  return on.stats().bytesSent ?? 0;
}

async function request(on: Connection, method: string, path: string, payload?: string): Promise<{ status: number; text: string }> {
  const { status, text } = await on.request(method, path, payload === undefined ? {} : { body: payload });
  return { status, text: status === 205 ? text : '' };
}
