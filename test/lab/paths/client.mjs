/**
 * Lab process: a client. Each connection has its own client with its own socket, like a command started by a person.
 */

import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { serve } from '../../../dist/bench/processes/child.js';
import { downloadFile, uploadFile } from '../../../dist/cli/files/transfer.js';
import { SvcClient } from '../../../dist/client/node.js';
import { EchoTransfer } from './echo-transfer.mjs';

/** ms between two polls of a connection. */
const LOOK = 5;

const open = new Map();

serve({
  /** Connects. @returns ms that it took, and the type of path */
  async connect({ name, options, candidates = [] }) {
    const client = SvcClient.create();
    const connection = client.createConnection();
    const events = [];
    connection.updateOptions(options);
    for (const event of ['open', 'path', 'rest', 'resume', 'close'])
      connection.on(event, () => events.push({ event, at: performance.now() }));
    if (candidates.length > 0) connection.enableDirectCandidates();
    for (const [host, port] of candidates) connection.addDirectCandidate(host, port);
    const begun = performance.now();
    try {
      await connection.connect();
    } catch (error) {
      await client.stop();
      throw error;
    }
    const at = performance.now();
    open.set(name, { client, connection, events, connectedAt: at });
    return { took: at - begun, ...view(connection) };
  },

  /**
   * Waits until the connection is direct or, unless `untilDirect`, an attempt is over. @returns ms since it was
   * connected, and the type of path
   */
  async settled({ name, limit, untilDirect = false }) {
    const { connection, connectedAt } = open.get(name);
    const isOver = () => {
      const { type, why } = view(connection);
      return type === 'DIRECT' || (!untilDirect && why !== 'IN_PROGRESS');
    };
    await until(isOver, connectedAt + limit - performance.now());
    return { took: performance.now() - connectedAt, ...view(connection) };
  },

  /** Waits until the connection uses a path of that type. @returns ms that it took; null: not within the limit */
  async becomes({ name, over, limit }) {
    const begun = performance.now();
    const { connection } = open.get(name);
    return (await until(() => view(connection).over === over, limit)) ? performance.now() - begun : null;
  },

  view: ({ name }) => view(open.get(name).connection),
  paths: ({ name }) => open.get(name).connection.paths(),

  /** A request. @returns ms until its answer */
  async request({ name }) {
    const begun = performance.now();
    const { status } = await open.get(name).connection.get('/thermostat/target');
    if (status !== 205) throw new Error(`the device answered ${status}`);
    return performance.now() - begun;
  },

  /** Sends bytes to the device and reads them back. @returns ms; fails when they differ */
  async transfer({ name, bytes }) {
    const folder = mkdtempSync(join(tmpdir(), 'svc-lab-transfer-'));
    try {
      const { connection } = open.get(name);
      const begun = performance.now();
      writeFileSync(join(folder, 'sent'), randomBytes(bytes));
      await uploadFile(connection, join(folder, 'sent'), `${name}.bin`);
      await downloadFile(connection, `${name}.bin`, join(folder, 'received'));
      if (!readFileSync(join(folder, 'sent')).equals(readFileSync(join(folder, 'received')))) throw new Error('other bytes came back');
      return performance.now() - begun;
    } finally {
      rmSync(folder, { recursive: true });
    }
  },

  /** Starts sending bytes to an echo service of the device. @param bytes of a write @param pace ms between two */
  async echo({ name, service, bytes, pace }) {
    const entry = open.get(name);
    const tunnel = entry.connection.createTcpTunnel();
    await tunnel.open(service);
    entry.echo = await EchoTransfer.begin(tunnel.getLocalPort(), { bytes, pace });
  },

  /** Progress of the echo. @param since ms since the epoch */
  stall: ({ name, since }) => open.get(name).echo.stall(since),

  /**
   * Waits for a byte that comes back after `since`. @returns ms from then on; null: none within the limit, or the
   * connection has ended
   */
  async resumed({ name, since, limit }) {
    const { connection, echo } = open.get(name);
    await until(() => echo.stall(since).first !== null || !connection.isConnected, since + limit - Date.now());
    return echo.stall(since).first;
  },

  /** Waits for every byte of the echo. @returns their number */
  finish: ({ name }) => open.get(name).echo.finish(),

  /** The events of the connection so far, and its rests. */
  history({ name }) {
    const { connection, events } = open.get(name);
    const { rests, restTime } = connection.isConnected ? connection.stats() : {};
    return { events: events.map(({ event }) => event), closed: connection.closeReason?.code ?? null, rests, restTime };
  },

  /** Closes the connection, and its socket. */
  async close({ name }) {
    const { client } = open.get(name);
    open.delete(name);
    await client.stop();
  },
});

function view(connection) {
  const { paths, whyNotDirect, nextAttempt } = connection.paths();
  const { over = null } = paths.find(({ active }) => active) ?? {};
  return { type: connection.getType(), over, why: whyNotDirect?.code ?? null, nextAttempt };
}

async function until(isTrue, limit) {
  for (const end = performance.now() + limit; ; ) {
    if (isTrue()) return true;
    if (performance.now() > end) return false;
    await new Promise((resolve) => setTimeout(resolve, LOOK));
  }
}
