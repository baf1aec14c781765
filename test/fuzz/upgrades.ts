/**
 * What strangers send to the HTTP port of a base station: damaged requests, upgrades and WebSocket frames, in the
 * handlers of a connection's socket. What these throw would end the process.
 */
import { createServer } from 'node:http';
import { duplexPair } from 'node:stream';
import { MAX_MESSAGE, WEBSOCKET_PATH } from '../../runtime/websocket/index.ts';
import { acceptUpgrades } from '../../server/websocket/upgrades.ts';
import type { Random } from '../../testing/random.ts';
import { below, chance, hostile, joined } from './mutate.ts';
import type { Target } from './target.ts';

const INPUTS = 4;
/** Turns of the event loop in which what one connection sends has been handled. */
const TURNS = 8;
const utf8 = new TextEncoder();

const offer = 'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==';
const upgrade = utf8.encode(`GET ${WEBSOCKET_PATH} HTTP/1.1\r\nHost: a\r\n${offer}\r\nSec-WebSocket-Protocol: svc.1\r\n\r\n`);
const requests = [
  upgrade,
  utf8.encode('GET /health HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMA\r\n\r\n'),
  utf8.encode('POST /v1 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n'),
];

/** Masked frames (RFC 6455 §5.2) with the mask 0: two messages, one in fragments, control frames, a long length. */
const frame = (first: number, length: readonly number[], data = 0): Uint8Array =>
  Uint8Array.of(first, 0x80 | length[0]!, ...length.slice(1), 0, 0, 0, 0, ...new Uint8Array(data));
const frames = [
  frame(0x82, [5], 5),
  joined(frame(0x02, [2], 2), frame(0x89, [1], 1), frame(0x80, [1], 1)),
  frame(0x82, [126, 1, 0], 256),
  frame(0x82, [127, 0, 0, 0, 0, 0, 1, 0x11, 0x70], 70_000),
  frame(0x82, [127, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]),
  frame(0x88, [2], 2),
  frame(0x81, [1], 1),
];

async function converse(random: Random): Promise<void> {
  let received = 0;
  const server = createServer((_, response) => response.end());
  acceptUpgrades(server, {
    webSockets: {
      accept: () => ({
        receive: ({ length }) => {
          received = Math.max(received, length);
        },
        closed: () => {},
      }),
      reserve: () => () => {},
      refused: () => {},
    },
    addresses: { isTrusted: () => false, of: () => '192.0.2.1' },
    nextIndex: () => 0,
    now: () => 0,
    upgraded: () => {},
  });
  const [peer, socket] = duplexPair();
  let answer = '';
  peer.on('data', (chunk: Buffer) => (answer += chunk.toString('latin1')));
  for (const side of [peer, socket]) side.on('error', () => {});
  server.emit('connection', Object.assign(socket, { setNoDelay: () => socket, setKeepAlive: () => socket, setTimeout: () => socket }));
  const isIntact = chance(random, 0.6);
  const sent = joined(
    isIntact ? upgrade : hostile(random, requests),
    ...Array.from({ length: below(random, 4) }, () => hostile(random, frames)),
  );
  const cut = below(random, sent.length);
  for (const part of [sent.subarray(0, cut), sent.subarray(cut)]) if (part.length > 0) peer.write(part);
  for (let turn = 0; turn < TURNS; turn++) await new Promise(setImmediate);
  if (isIntact && !answer.startsWith('HTTP/1.1 101 ')) throw new Error(`an intact upgrade is answered with ${answer.slice(0, 40)}`);
  if (received > MAX_MESSAGE) throw new Error(`a message of ${received} bytes was passed on`);
  peer.destroy();
  socket.destroy();
}

const upgrades: Target = {
  name: 'http-upgrades',
  async iterate(random) {
    for (let i = 0; i < INPUTS; i++) await converse(random);
  },
};

export const upgradeTargets: readonly Target[] = [upgrades];
