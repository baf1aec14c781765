/**
 * Upgrades to WebSockets on the HTTP server of a base station: `GET /svc/v1` with the subprotocol `svc.1` (PROTOCOL.md
 * §2.6). Everything else in the request is ignored: Host, Origin, cookies, tokens.
 *
 * 1. A request that may become something other than a WebSocket, such as HTTP/2 in cleartext (`h2c`), is an ordinary
 *    one (`reinject.ts`).
 * 2. Another path gets 404, another subprotocol 400, each with a sentence.
 * 3. A slot for the client's address is reserved, or the answer is 503.
 * 4. After the upgrade HTTP no longer counts the connection: its slot there is released, and no timeout of requests
 *    applies.
 * 5. The WebSocket's slot is released when the TCP connection is closed, not before. The connection of a WebSocket that
 *    makes way, or has no session, is cut at once.
 */
import { type IncomingMessage, type Server, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { type ServerOptions, WebSocketServer } from 'ws';
import type { SocketAddress } from '../../protocol/address.ts';
import { MAX_MESSAGE, SUBPROTOCOL, WEBSOCKET_PATH } from '../../runtime/websocket/index.ts';
import type { ClientAddresses } from '../client-address.ts';
import type { WebSockets } from '../station/web-sockets.ts';
import { AcceptedPipe } from './pipe.ts';
import { reinject } from './reinject.ts';

export interface UpgradeOptions {
  readonly webSockets: Pick<WebSockets, 'accept' | 'refused' | 'reserve'>;
  readonly addresses: Pick<ClientAddresses, 'isTrusted' | 'of'>;
  /** Number of the next socket of the environment. */
  readonly nextIndex: () => number;
  /** ms of a monotonic clock. */
  readonly now: () => number;
  /** Called when HTTP no longer counts the connection. */
  readonly upgraded: (socket: Socket) => void;
}

/** Most fragments of one message: packets come in one. */
export const MAX_FRAGMENTS = 64;
/**
 * Pieces in which a message may arrive, each of which costs 400 bytes besides its own: enough for TCP over packets of
 * 576 bytes, which every IPv4 host accepts (RFC 791).
 */
export const MAX_CHUNKS = 128;
/** ms for the peer's half of the closing handshake. */
const CLOSE_TIMEOUT = 1_000;
/** ms that a peer has to read a refusal and close. */
const REFUSAL_TIMEOUT = 1_000;

/** Options of the library that are missing from its types. */
type LibraryOptions = ServerOptions & { readonly closeTimeout: number; readonly maxFragments: number; readonly maxBufferedChunks: number };

const LIBRARY_OPTIONS: LibraryOptions = {
  noServer: true,
  clientTracking: false,
  perMessageDeflate: false,
  autoPong: false,
  skipUTF8Validation: true,
  maxPayload: MAX_MESSAGE,
  maxFragments: MAX_FRAGMENTS,
  maxBufferedChunks: MAX_CHUNKS,
  closeTimeout: CLOSE_TIMEOUT,
  handleProtocols: () => SUBPROTOCOL,
};

/** Handles the upgrades of a server, in cleartext or over TLS. */
export function acceptUpgrades(server: Pick<Server, 'emit' | 'on'>, options: UpgradeOptions): void {
  const library = new WebSocketServer(LIBRARY_OPTIONS);
  server.on('upgrade', (request: IncomingMessage, duplex: Duplex, head: Buffer) => {
    const socket = duplex as Socket;
    // The library listens only once it has the connection.
    socket.on('error', () => socket.destroy());
    if (isForWebSocket(request)) upgrade(library, options, request, socket, head);
    else reinject(server, request, socket, head, () => options.upgraded(socket));
  });
}

/** Returns whether a request asks for a WebSocket, not for another protocol. */
export function isForWebSocket({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  return headers.upgrade?.toLowerCase() === 'websocket';
}

function upgrade(library: WebSocketServer, options: UpgradeOptions, request: IncomingMessage, socket: Socket, head: Buffer): void {
  const { addresses, webSockets } = options;
  const address = addresses.of(request);
  const refusal = refusalOf(request);
  if (refusal !== null) {
    webSockets.refused(address, refusal.reason);
    refuse(socket, refusal);
    return;
  }
  const release = webSockets.reserve(address);
  if (release === null) {
    refuse(socket, FULL);
    return;
  }
  socket.once('close', release);
  library.handleUpgrade(request, socket, head, (webSocket) => {
    options.upgraded(socket);
    const peer = peerOf(address, socket);
    const pipe = new AcceptedPipe(webSocket, options.nextIndex(), peer);
    const end = (): void => {
      release();
      socket.destroy();
    };
    pipe.listen(webSockets.accept(pipe, end, peer), options.now);
  });
}

/** Returns the peer; behind a proxy the port of the client is unknown. */
function peerOf(address: string, { remoteAddress = '', remotePort = 0 }: Socket): SocketAddress {
  const isStraight = remoteAddress === address || remoteAddress === `::ffff:${address}`;
  return { address, port: isStraight ? remotePort : 0 };
}

interface Refusal {
  readonly status: number;
  readonly reason: string;
  readonly sentence: string;
}

const ELSEWHERE: Refusal = { status: 404, reason: 'another path', sentence: `WebSockets are at ${WEBSOCKET_PATH}.` };
const OTHER_PROTOCOL: Refusal = { status: 400, reason: 'another subprotocol', sentence: `Offer the subprotocol ${SUBPROTOCOL}.` };
const FULL: Refusal = {
  status: 503,
  reason: 'too many WebSockets',
  sentence: 'There are too many WebSockets at the base station, or from your address: try again later, or use UDP.',
};

function refusalOf({ url = '', headers }: IncomingMessage): Refusal | null {
  if (url.split('?', 1)[0] !== WEBSOCKET_PATH) return ELSEWHERE;
  const offered = (headers['sec-websocket-protocol'] ?? '').split(',').map((name) => name.trim());
  return offered.includes(SUBPROTOCOL) ? null : OTHER_PROTOCOL;
}

function refuse(socket: Socket, { status, sentence }: Refusal): void {
  // Limits a peer that continues to send: HTTP's own timeouts end with the request.
  const timer = setTimeout(() => socket.destroy(), REFUSAL_TIMEOUT);
  socket.once('close', () => clearTimeout(timer));
  const head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\ncontent-type: text/plain; charset=utf-8\r\nconnection: close`;
  socket.end(`${head}\r\ncontent-length: ${Buffer.byteLength(sentence)}\r\n\r\n${sentence}`);
}
