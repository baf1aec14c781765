/** Lab process: a client. Each connection has a client of its own, with a socket of its own, as a command has that a person starts. */

import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { serve } from '../../../dist/bench/processes/child.js';
import { downloadFile, uploadFile } from '../../../dist/cli/file-transfer.js';
import { SvcClient } from '../../../dist/client/node.js';

/** ms between two looks at a connection. */
const LOOK = 5;

const open = new Map();

serve({
  /** Connects. @returns ms that it took, and the way */
  async connect({ name, options, candidates = [] }) {
    const client = SvcClient.create();
    const connection = client.createConnection();
    const events = [];
    connection.updateOptions(options);
    connection.addConnectionEventsListener({ onEvent: (event) => events.push({ event, at: performance.now() }) });
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

  /** Waits until the connection is direct, or an attempt is over, unless `untilDirect`. @returns ms since it was connected, and the way */
  async settled({ name, limit, untilDirect = false }) {
    const { connection, connectedAt } = open.get(name);
    const isOver = () => {
      const { type, why } = view(connection);
      return type === 'DIRECT' || (!untilDirect && why !== 'IN_PROGRESS');
    };
    await until(isOver, connectedAt + limit - performance.now());
    return { took: performance.now() - connectedAt, ...view(connection) };
  },

  /** Waits until the connection goes over something. @returns ms that it took; null: not within the limit */
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
    const coap = open.get(name).connection.createCoap('GET', '/thermostat/target');
    await coap.execute();
    if (coap.getResponseStatusCode() !== 205) throw new Error(`the device answered ${coap.getResponseStatusCode()}`);
    return performance.now() - begun;
  },

  /** Sends bytes to the device and fetches them again. @returns ms; fails when they are not the same */
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

  /** Fetches the same bytes again and again for so many ms. @returns the longest time without any; fails when they are not the same */
  async stall({ name, bytes, time }) {
    const folder = mkdtempSync(join(tmpdir(), 'svc-lab-transfer-'));
    try {
      const { connection } = open.get(name);
      writeFileSync(join(folder, 'sent'), randomBytes(bytes));
      await uploadFile(connection, join(folder, 'sent'), `${name}.bin`);
      let [last, longest] = [performance.now(), 0];
      const onProgress = () => {
        const now = performance.now();
        longest = Math.max(longest, now - last);
        last = now;
      };
      for (const end = last + time; performance.now() < end; ) {
        await downloadFile(connection, `${name}.bin`, join(folder, 'received'), { onProgress });
        if (!readFileSync(join(folder, 'sent')).equals(readFileSync(join(folder, 'received')))) throw new Error('other bytes came back');
        rmSync(join(folder, 'received'));
      }
      return longest;
    } finally {
      rmSync(folder, { recursive: true });
    }
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
