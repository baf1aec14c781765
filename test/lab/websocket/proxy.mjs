/**
 * Lab process: proxies for CONNECT (RFC 9110 §9.3.6), working and faulty ones, each on its own port.
 *
 * Arguments: the address to listen on, and `name:password` of the one that requires them.
 */
import { createServer } from 'node:http';
import { connect, createServer as createTcpServer } from 'node:net';

const [address, credentials] = process.argv.slice(2);
const WANTED = `Basic ${Buffer.from(credentials).toString('base64')}`;
const PAGE = '<html><body>Accept the terms of this network</body></html>';
const HTML = `content-type: text/html\r\ncontent-length: ${PAGE.length}\r\n\r\n${PAGE}`;
const TUNNEL = 'HTTP/1.1 200 Connection established\r\n\r\n';

const kinds = {
  /** Requires a name and a password. */
  good: (request, socket) => {
    if (request.headers['proxy-authorization'] === WANTED) tunnel(request.url, socket);
    else socket.end('HTTP/1.1 407 Proxy Authentication Required\r\nproxy-authenticate: Basic realm="lab"\r\ncontent-length: 0\r\n\r\n');
  },
  /** Never answers a request. */
  silent: () => {},
  /** Answers with a login page until its terms are accepted (RFC 6585 §6). */
  portal: (_, socket) => socket.end(`HTTP/1.1 511 Network Authentication Required\r\n${HTML}`),
  /** Answers the login page with status 200. */
  page: (_, socket) => socket.end(`HTTP/1.1 200 OK\r\n${HTML}`),
  /** Opens a tunnel that leads to a page. */
  impostor: (_, socket) => {
    socket.write(TUNNEL);
    socket.once('data', () => socket.end(`HTTP/1.1 200 OK\r\n${HTML}`));
  },
};

const ports = { stalling: await listening(createTcpServer((socket) => socket.on('error', () => {}))) };
for (const [kind, answer] of Object.entries(kinds)) {
  const server = createServer();
  server.on('connect', (request, socket) => {
    socket.on('error', () => {});
    answer(request, socket);
  });
  ports[kind] = await listening(server);
}
console.log(JSON.stringify(ports));

function tunnel(target, socket) {
  const [host, port] = target.split(':');
  const upstream = connect(Number(port), host, () => {
    socket.write(TUNNEL);
    upstream.pipe(socket).pipe(upstream);
  });
  upstream.on('error', () => socket.destroy());
  socket.on('close', () => upstream.destroy());
}

function listening(server) {
  return new Promise((resolve) => server.listen(0, address, () => resolve(server.address().port)));
}
