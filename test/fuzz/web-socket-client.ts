/**
 * What a base station, or an attacker in its place, sends over a WebSocket that this host opened: damaged answers to
 * the upgrade, and damaged frames. Real sockets on loopback, in whose handlers the library `ws` runs.
 */
import { createHash } from 'node:crypto';
import { type AddressInfo, createServer } from 'node:net';
import { openWebSocket } from '../../platform/node/websocket.ts';
import { RemoteError, type SvcError } from '../../protocol/errors/index.ts';
import { MAX_MESSAGE, WEBSOCKET_PATH } from '../../runtime/websocket/index.ts';
import type { Random } from '../../testing/random.ts';
import { below, chance, hostile, joined } from './mutate.ts';
import type { Target } from './target.ts';

const INPUTS = 3;
const PROTOCOL = 'svc.1';
/** ms: an end that waits for this long missed that the peer closed. */
const TIMEOUT = 10_000;
/** RFC 6455 §1.3. */
const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
const utf8 = new TextEncoder();

const others = [
  'HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 4\r\n\r\n<h1>',
  'HTTP/1.1 301 Moved\r\nLocation: ws://192.0.2.1/\r\nSet-Cookie: a=b\r\n\r\n',
  'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 407 \r\nProxy-Authenticate: Basic\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
].map((answer) => utf8.encode(answer));

/** Frames without mask (RFC 6455 §5.2): messages, one in fragments, text, control frames, long lengths. */
const frame = (first: number, length: readonly number[], data = 0): Uint8Array => Uint8Array.of(first, ...length, ...new Uint8Array(data));
const frames = [
  frame(0x82, [5], 5),
  joined(frame(0x02, [2], 2), frame(0x89, [1], 1), frame(0x80, [1], 1)),
  frame(0x82, [126, 1, 0], 256),
  frame(0x82, [127, 0, 0, 0, 0, 0, 1, 0x11, 0x70], 70_000),
  frame(0x82, [127, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]),
  Uint8Array.of(0x88, 4, 0x03, 0xe8, 0x61, 0x62),
  frame(0x81, [1], 1),
  frame(0xc2, [2], 2),
];

function upgradeOf(request: string): Uint8Array {
  const key = /^sec-websocket-key: *(\S+)/im.exec(request)?.[1] ?? '';
  const accept = createHash('sha1').update(`${key}${GUID}`).digest('base64');
  const head = 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade';
  return utf8.encode(`${head}\r\nSec-WebSocket-Accept: ${accept}\r\nSec-WebSocket-Protocol: ${PROTOCOL}\r\n\r\n`);
}

async function converse(random: Random): Promise<void> {
  const isIntact = chance(random, 0.6);
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', (request: Buffer) => {
      const upgrade = upgradeOf(request.toString('latin1'));
      const answer = isIntact ? upgrade : hostile(random, [upgrade, ...others]);
      const sent = joined(answer, ...Array.from({ length: below(random, 4) }, () => hostile(random, frames)));
      const cut = below(random, sent.length);
      socket.write(sent.subarray(0, cut));
      setImmediate(() => socket.end(sent.subarray(cut)));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    await opened(`ws://127.0.0.1:${(server.address() as AddressInfo).port}${WEBSOCKET_PATH}`, isIntact);
  } finally {
    server.close();
  }
}

/** Opens a WebSocket and waits for its end. */
async function opened(url: string, isIntact: boolean): Promise<void> {
  let longest = 0;
  const ends: SvcError[] = [];
  const timeout = AbortSignal.timeout(TIMEOUT);
  try {
    await new Promise<void>((resolve, reject) => {
      timeout.addEventListener('abort', () => reject(new Error('the end of the WebSocket is not reported')));
      const receive = ({ length }: Uint8Array): void => {
        longest = Math.max(longest, length);
      };
      const closed = (error: SvcError): void => {
        ends.push(error);
        resolve();
      };
      openWebSocket({ url, protocol: PROTOCOL, timeout: TIMEOUT, receive, closed }, 0).catch(reject);
    });
    await new Promise(setImmediate);
  } catch (error) {
    if (isIntact || !(error instanceof RemoteError)) throw error;
  }
  if (longest > MAX_MESSAGE) throw new Error(`a message of ${longest} bytes was passed on`);
  if (ends.length > 1) throw new Error(`its end is reported ${ends.length} times`);
  for (const error of ends) if (!(error instanceof RemoteError)) throw error;
}

const client: Target = {
  name: 'web-socket-client',
  async iterate(random) {
    for (let i = 0; i < INPUTS; i++) await converse(random);
  },
};

export const webSocketClientTargets: readonly Target[] = [client];
