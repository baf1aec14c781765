/**
 * Handles requests that offer an upgrade to something other than a WebSocket, as `curl --http2` does: a server may
 * ignore the offer (RFC 9110 §7.8), and answers in HTTP/1.1.
 *
 * Once Node's HTTP server upgrades anything, it hands over the connection of every such request with its body unread
 * (`shouldUpgradeCallback` came with Node 22.21 and 24.9). The request goes back into the connection, without the
 * offer, and the connection goes to the server as a new one: limits, timeouts and bodies work as usual.
 */
import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';

/** Connection-specific headers (RFC 9110 §7.6.1) of the offer; `http2-settings` is that of RFC 7540 §3.2.1. */
const OFFER = ['connection', 'http2-settings', 'keep-alive', 'upgrade'];

/**
 * Returns a request that Node has taken for an upgrade to the server.
 * @param release releases the connection's slot at the server, which counts it again
 */
export function reinject(server: Pick<Server, 'emit'>, request: IncomingMessage, socket: Socket, head: Buffer, release: () => void): void {
  socket.unshift(Buffer.concat([Buffer.from(headOf(request), 'latin1'), head]));
  if (socket instanceof TLSSocket) {
    // The slot belongs to the TCP connection below.
    server.emit('secureConnection', socket);
    return;
  }
  release();
  server.emit('connection', socket);
}

/** One request per connection: the next one might offer again. */
function headOf({ method, url, httpVersion, rawHeaders }: IncomingMessage): string {
  let text = `${method} ${url} HTTP/${httpVersion}\r\n`;
  for (let i = 0; i < rawHeaders.length; i += 2)
    if (!OFFER.includes(rawHeaders[i]!.toLowerCase())) text += `${rawHeaders[i]}: ${rawHeaders[i + 1]}\r\n`;
  return `${text}connection: close\r\n\r\n`;
}
