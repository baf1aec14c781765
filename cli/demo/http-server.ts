/**
 * The HTTP server behind the device: its own process, which serves one folder on a free loopback port.
 *
 * `GET /` answers the list of files as JSON, `GET /<name>` the file. Prints `{"event":"listening","port":N}`.
 */
import { createReadStream } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { basename, join } from 'node:path';
import { pipeline } from 'node:stream/promises';

const folder = process.argv[2];
if (folder === undefined) throw new Error('usage: http-server.js FOLDER');

const server = createServer((request, response) => {
  answer(folder, decodeURIComponent((request.url ?? '/').slice(1)), response).catch(() => response.destroy());
});
server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`${JSON.stringify({ event: 'listening', port: (server.address() as AddressInfo).port })}\n`);
});
for (const signal of ['SIGTERM', 'SIGINT', 'disconnect'] as const) process.on(signal, () => process.exit(0));

async function answer(root: string, name: string, response: ServerResponse): Promise<void> {
  if (name === '') {
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify((await readdir(root)).sort()));
    return;
  }
  const file = join(root, basename(name));
  const size = await stat(file).then(
    (found) => found.size,
    () => -1,
  );
  if (size < 0) {
    response.writeHead(404).end();
    return;
  }
  response.writeHead(200, { 'content-length': size });
  await pipeline(createReadStream(file), response);
}
