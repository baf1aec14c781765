/** WebSockets of a Node platform with real servers and proxies. */
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type WebSocket, WebSocketServer } from 'ws';
import type { MessagePipe, WebSocketOptions } from '../../../platform/environment.ts';
import { nodeEnvironment } from '../../../platform/node/index.ts';
import type { SvcError } from '../../../protocol/errors/index.ts';
import { type Authority, authority, type ServerPair, serverPair } from '../../support/certificates.ts';
import { connectProxy, httpsServer } from '../../support/https-server.ts';
import { TestProcess } from '../../support/process.ts';

let root: Authority;
let pair: ServerPair;

beforeAll(async () => {
  root = await authority('Root');
  pair = await serverPair(root);
});

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

function environment(values: Record<string, string>): void {
  for (const [name, value] of Object.entries(values)) {
    process.env[name] = value;
    closing.push(() => delete process.env[name]);
  }
}

/** A server of `ws` that echoes messages, and a promise for each connection. */
function echo(server: Server): { accepted: Promise<WebSocket> } {
  const sockets = new WebSocketServer({ server: server as never, path: '/svc/v1', handleProtocols: (offered) => [...offered][0] ?? false });
  const accepted = new Promise<WebSocket>((resolve) => sockets.once('connection', resolve));
  sockets.on('connection', (socket) => {
    socket.on('error', () => {});
    socket.on('message', (data, isBinary) => isBinary && socket.send(data));
  });
  closing.push(() => {
    for (const socket of sockets.clients) socket.terminate();
  });
  return { accepted };
}

async function listening(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closing.push(() => new Promise((resolve) => server.close(resolve)));
  return (server.address() as AddressInfo).port;
}

async function plainServer() {
  const server = createHttpServer((_, response) => response.writeHead(404, { 'content-type': 'text/html' }).end('<h1>Welcome</h1>'));
  const port = await listening(server);
  return { port, ...echo(server) };
}

async function secureServer(of = pair) {
  const { port, server, close } = await httpsServer(of, (_, response) => void response.end());
  closing.push(close);
  return { port, ...echo(server) };
}

/** Events of a pipe, in order. */
interface Heard {
  readonly messages: Uint8Array[];
  readonly next: () => Promise<Uint8Array>;
  readonly closed: Promise<SvcError>;
  readonly pipe: MessagePipe;
}

const { network } = nodeEnvironment();

async function open(url: string, options: Partial<WebSocketOptions> = {}): Promise<Heard> {
  const messages: Uint8Array[] = [];
  let waiting: ((message: Uint8Array) => void) | null = null;
  let ended!: (error: SvcError) => void;
  const closed = new Promise<SvcError>((resolve) => {
    ended = resolve;
  });
  const receive = (message: Uint8Array): void => {
    if (waiting === null) messages.push(message);
    else waiting(message);
    waiting = null;
  };
  const pipe = await network.openWebSocket!({ url, protocol: 'svc.1', timeout: 5000, receive, closed: ended, ...options });
  closing.push(() => pipe.close());
  const next = (): Promise<Uint8Array> =>
    messages.length > 0
      ? Promise.resolve(messages.shift()!)
      : new Promise((resolve) => {
          waiting = resolve;
        });
  return { pipe, closed, messages, next };
}

/** `CODE: message` of a failed open. */
async function problem(url: string, options: Partial<WebSocketOptions> = {}): Promise<string> {
  return open(url, options).then(
    () => 'opened',
    ({ code, message }) => `${code}: ${message}`,
  );
}

describe('a WebSocket', () => {
  test('carries binary messages of every size both ways, and reports when each has left', async () => {
    const { port } = await plainServer();
    const { pipe, next } = await open(`ws://127.0.0.1:${port}/svc/v1`);
    expect([pipe.address, pipe.port, pipe.proxy]).toEqual(['127.0.0.1', port, null]);
    const left: number[] = [];
    for (const length of [0, 1, 1200, 65_535]) {
      const message = new Uint8Array(length).fill(length);
      pipe.send(message, () => left.push(length));
      expect(left).not.toContain(length);
      expect(new Uint8Array(await next())).toEqual(message);
      expect(message.every((byte) => byte === length % 256)).toBe(true);
    }
    expect(left).toEqual([0, 1, 1200, 65_535]);
  });

  test('of wss accepts any certificate, and only a valid one where it is to be verified', async () => {
    const { port } = await secureServer();
    const url = `wss://localhost:${port}/svc/v1`;
    const { pipe, next } = await open(url);
    pipe.send(Uint8Array.of(1, 2), () => {});
    expect([...(await next())]).toEqual([1, 2]);
    expect(await problem(url, { verifyCertificate: true })).toMatch(/^CERTIFICATE_VALIDATION_FAILED: .*localhost.*unknown authority/);
    environment({ NODE_TLS_REJECT_UNAUTHORIZED: '0' });
    expect(await problem(url, { verifyCertificate: true })).toMatch(/^CERTIFICATE_VALIDATION_FAILED/);
    expect(await problem(url, { verifyCertificate: true, rootCerts: root.pem })).toBe('opened');
    const elsewhere = await secureServer(await serverPair(root, { names: ['other.example'] }));
    const wrongName = `wss://127.0.0.1:${elsewhere.port}/svc/v1`;
    expect(await problem(wrongName, { verifyCertificate: true, rootCerts: root.pem })).toMatch(/another name/);
  });

  test('has an index that no other socket of the environment has', async () => {
    const { port } = await plainServer();
    const first = await open(`ws://127.0.0.1:${port}/svc/v1`);
    const udp = await network.bind({ port: 0, host: '127.0.0.1', receive: () => {} });
    const second = await open(`ws://127.0.0.1:${port}/svc/v1`);
    expect([udp.index, second.pipe.index]).toEqual([first.pipe.index + 1, first.pipe.index + 2]);
    udp.close();
  });

  test('that receives text ends with 1003', async () => {
    const { port, accepted } = await plainServer();
    const { closed } = await open(`ws://127.0.0.1:${port}/svc/v1`);
    const server = await accepted;
    const code = new Promise((resolve) => server.once('close', resolve));
    server.send('hello');
    expect(await closed).toMatchObject({ code: 'BAD_RESPONSE', message: expect.stringContaining('text') });
    expect(await code).toBe(1003);
  });

  test('that receives a message over 65,535 bytes ends with 1009', async () => {
    const { port, accepted } = await plainServer();
    const { closed, messages } = await open(`ws://127.0.0.1:${port}/svc/v1`);
    const server = await accepted;
    const code = new Promise((resolve) => server.once('close', resolve));
    server.send(new Uint8Array(65_536));
    expect(await closed).toMatchObject({ code: 'CLOSED' });
    expect([await code, messages]).toEqual([1009, []]);
  });

  test('whose peer sends a message in tiny fragments ends with 1008', async () => {
    const { port, accepted } = await plainServer();
    const { closed } = await open(`ws://127.0.0.1:${port}/svc/v1`);
    const server = await accepted;
    const code = new Promise((resolve) => server.once('close', resolve));
    const tcp = (server as unknown as { _socket: Socket })._socket;
    tcp.setNoDelay().write(Uint8Array.of(0x82, 126, 0xff, 0xff));
    for (let n = 0; n < 600 && tcp.writable; n++) {
      tcp.write(Uint8Array.of(n));
      await new Promise(setImmediate);
    }
    tcp.end();
    expect(await closed).toMatchObject({ code: 'CLOSED' });
    expect(await code).toBe(1008);
  });

  test('reports once that the peer has closed it, or has gone, and nothing after its own close', async () => {
    const { port, accepted } = await plainServer();
    const url = `ws://127.0.0.1:${port}/svc/v1`;
    const first = await open(url);
    (await accepted).close(1001);
    expect(await first.closed).toMatchObject({ code: 'CLOSED', message: expect.stringContaining('1001') });
    await new Promise<void>((resolve) => first.pipe.send(Uint8Array.of(1), resolve));
    const again = await plainServer();
    let closures = 0;
    const second = await open(`ws://127.0.0.1:${again.port}/svc/v1`, { closed: () => closures++ });
    const server = await again.accepted;
    const code = new Promise((resolve) => server.once('close', resolve));
    second.pipe.close(1001);
    second.pipe.close();
    expect([await code, closures]).toEqual([1001, 0]);
  });
});

describe('a failed open', () => {
  test('to a page is BAD_RESPONSE with its status', async () => {
    const { port } = await plainServer();
    expect(await problem(`ws://127.0.0.1:${port}/elsewhere`)).toMatch(/^BAD_RESPONSE: .*answers 400/);
    const portal = await listening(
      createHttpServer((_, response) => response.writeHead(200, { 'content-type': 'text/html' }).end('Log in')),
    );
    expect(await problem(`ws://127.0.0.1:${portal}/svc/v1`)).toMatch(/^BAD_RESPONSE: .*answers 200 and a page/);
    const moved = await listening(
      createHttpServer((_, response) => response.writeHead(302, { location: `ws://127.0.0.1:${port}/` }).end()),
    );
    expect(await problem(`ws://127.0.0.1:${moved}/svc/v1`)).toMatch(/^BAD_RESPONSE: .*answers 302/);
  });

  test.each([
    [302, /answers 302: redirects are not followed\. Give the URL .* login first, in a browser$/],
    [511, /answers 511: this network wants a login first, in a browser$/],
    [407, /answers 407: .* HTTPS_PROXY$/],
    [404, /answers 404: is the path right\?$/],
    [502, /answers 502: a proxy does not reach the base station/],
    [503, /answers 503: it has no room for another one, .* try again later$/],
    [400, /answers 400: a proxy .* may drop the request to upgrade\. .* pass on Upgrade and Connection$/],
    [426, /answers 426: a proxy .* pass on Upgrade and Connection$/],
    [403, /answers 403$/],
  ])('with the answer %i suggests a remedy, where one is known, also with a page as proxies send it', async (status, sentence) => {
    for (const type of status === 403 ? ['text/plain'] : ['text/plain', 'text/html']) {
      const port = await listening(createHttpServer((_, response) => response.writeHead(status, { 'content-type': type }).end()));
      expect(await problem(`ws://127.0.0.1:${port}/svc/v1`)).toMatch(sentence);
    }
  });

  test('to a server that chooses no subprotocol, or another, is BAD_RESPONSE', async () => {
    const server = createHttpServer();
    const port = await listening(server);
    const sockets = new WebSocketServer({ server, handleProtocols: () => false });
    sockets.on('connection', (socket) => closing.push(() => socket.terminate()));
    expect(await problem(`ws://127.0.0.1:${port}/svc/v1`)).toMatch(/^BAD_RESPONSE: .*subprotocol/);
  });

  test('names its cause: no TLS where TLS was expected, no listener, no address', async () => {
    const { port } = await plainServer();
    expect(await problem(`wss://127.0.0.1:${port}/svc/v1`)).toMatch(/^BAD_RESPONSE: .*not TLS/);
    expect(await problem('ws://127.0.0.1:1/svc/v1')).toMatch(/^CONNECTION_REFUSED: 127.0.0.1:1/);
    expect(await problem('ws://station.invalid/svc/v1')).toMatch(/^DNS: station.invalid/);
  });

  test('to a silent server is TIMEOUT, and the signal ends the wait; neither leaves a connection', async () => {
    const gone: Promise<void>[] = [];
    const port = await listening(createServer((socket) => gone.push(closeOf(socket))));
    expect(await problem(`ws://127.0.0.1:${port}/svc/v1`, { timeout: 50 })).toMatch(/^TIMEOUT: 127.0.0.1:\d+ did not open/);
    const stop = new AbortController();
    const asked = problem(`wss://127.0.0.1:${port}/svc/v1`, { signal: stop.signal });
    setImmediate(() => stop.abort());
    expect(await asked).toMatch(/^STOPPED/);
    await Promise.all(gone);
  });

  test.each(['https://h/', 'ws://me:secret@h/', 'nothing', 'ws://h/#x'])('of %s is INVALID_ARGUMENT', async (url) => {
    const refused = await problem(url);
    expect(refused).toMatch(/^INVALID_ARGUMENT: /);
    expect(refused).not.toContain('secret');
  });
});

describe('through a proxy', () => {
  test('of HTTPS_PROXY by CONNECT, also ws:, with credentials that are never shown', async () => {
    const [secure, plain] = [await secureServer(), await plainServer()];
    for (const [scheme, port] of [
      ['wss', secure.port],
      ['ws', plain.port],
    ] as const) {
      const proxy = await connectProxy(port, 'me:sec ret');
      closing.push(proxy.close);
      const { host, port: proxyPort } = new URL(proxy.url);
      environment({ HTTPS_PROXY: `http://me:sec%20ret@${host}` });
      const { pipe, next } = await open(`${scheme}://station.example:${port}/svc/v1`);
      expect([pipe.proxy, pipe.port]).toEqual([host, Number(proxyPort)]);
      pipe.send(Uint8Array.of(7), () => {});
      expect([...(await next())]).toEqual([7]);
      expect(proxy.asked).toEqual([`station.example:${port}`]);
    }
  });

  test('of HTTP_PROXY for ws: alone, and never where NO_PROXY names the host', async () => {
    const { port } = await plainServer();
    const proxy = await connectProxy(port);
    closing.push(proxy.close);
    environment({ HTTP_PROXY: proxy.url });
    await open(`ws://station.example:${port}/svc/v1`);
    expect(await problem('wss://station.invalid/svc/v1')).toMatch(/^DNS/);
    environment({ NO_PROXY: 'station.invalid' });
    expect(await problem('ws://station.invalid/svc/v1')).toMatch(/^DNS/);
    expect(proxy.asked).toEqual([`station.example:${port}`]);
  });

  test.each([
    ['', /^CONNECTION_REFUSED: the proxy 127\S+ refused .*407.*asks for a name and a password/],
    ['me:wrongpass@', /^CONNECTION_REFUSED: the proxy 127\S+ refused .*407.*does not take the name and password of HTTPS_PROXY/],
  ])('that requires a password and receives "%s": a sentence with the remedy', async (credentials, sentence) => {
    const proxy = await connectProxy(1, 'me:secret');
    closing.push(proxy.close);
    environment({ HTTPS_PROXY: proxy.url.replace('//', `//${credentials}`) });
    const refused = await problem('wss://station.example/svc/v1');
    expect(refused).toMatch(sentence);
    expect(refused).not.toContain('wrongpass');
  });

  test('shows its credentials in no debug output of Node or a library', { tags: ['slow'] }, async () => {
    const proxy = await connectProxy(1, 'me:another');
    closing.push(proxy.close);
    const module = JSON.stringify(new URL('../../../dist/platform/node/index.js', import.meta.url).href);
    const program = `
      const { network } = (await import(${module})).nodeEnvironment();
      const options = { url: 'wss://station.example/svc/v1', protocol: 'svc.1', timeout: 5000, receive() {}, closed() {} };
      await network.openWebSocket(options).catch(({ message }) => console.log(message));`;
    const variables = { HTTPS_PROXY: proxy.url.replace('//', '//me:secret@'), NODE_DEBUG: '*', DEBUG: '*' };
    const { stdout, stderr } = await new TestProcess(process.execPath, ['--input-type=module', '--eval', program], { variables }).ended;
    expect(stdout).toContain('does not take the name and password');
    expect(stderr).toContain('HTTP');
    expect(`${stdout}${stderr}`).not.toMatch(new RegExp(`secret@|${Buffer.from('me:secret').toString('base64')}`));
  });

  test.each([
    ['HTTP_PROXY', 'socks5://127.0.0.1:1'],
    ['http_proxy', 'http://me:100%safe@127.0.0.1:1'],
    ['HTTPS_PROXY', 'http://safe:33/4@127.0.0.1:1'],
    ['HTTPS_PROXY', 'http://safe:33?4@127.0.0.1:1'],
    ['HTTPS_PROXY', 'http://safe:33#4@127.0.0.1:1'],
    ['HTTPS_PROXY', 'http://me:safe@127.0.0.1:port'],
    ['HTTPS_PROXY', 'http://me:sa fe@127.0.0.1 :1'],
    ['ALL_PROXY', 'socks5://127.0.0.1:1'],
  ])('of %s that is none is named by its variable: %s', async (variable, proxy) => {
    environment({ [variable]: proxy });
    const refused = await problem('ws://station.example/svc/v1');
    expect(refused).toMatch(new RegExp(`^INVALID_ARGUMENT: .* (of|in) ${variable} `));
    expect(refused).not.toContain('safe');
  });

  test('of HTTP_PROXY that rejects its password: the sentence names that variable', async () => {
    const proxy = await connectProxy(1, 'me:secret');
    closing.push(proxy.close);
    environment({ HTTP_PROXY: proxy.url.replace('//', '//me:wrongpass@') });
    expect(await problem('ws://station.example/svc/v1')).toMatch(/^CONNECTION_REFUSED: .* name and password of HTTP_PROXY$/);
  });

  test('that stalls is named in TIMEOUT, without its credentials, and disconnected', async () => {
    const { timeout } = AbortSignal;
    AbortSignal.timeout = (time) => timeout.call(AbortSignal, Math.round(time / 10));
    closing.push(() => Object.assign(AbortSignal, { timeout }));
    let gone: Promise<void> | undefined;
    const port = await listening(
      createServer((socket) => {
        gone = closeOf(socket);
      }),
    );
    environment({ HTTPS_PROXY: `http://me:secret@127.0.0.1:${port}` });
    const late = await problem('wss://station.example/svc/v1', { timeout: 123.4 });
    expect(late).toMatch(new RegExp(`^TIMEOUT: the proxy 127\\.0\\.0\\.1:${port} did not connect to station.example within 0\\.12 s$`));
    // The remaining time, which no caller set.
    expect(await problem('wss://station.example/svc/v1', { timeout: 20 })).toMatch(/ did not connect to station.example in time$/);
    expect(late).not.toContain('secret');
    await gone;
  });

  test('that answers with a page, or connects to one', async () => {
    const page = 'HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n<h1>Blocked</h1>';
    const port = await listening(createServer((socket) => void socket.once('data', () => socket.end(page)).on('error', () => {})));
    environment({ HTTPS_PROXY: `http://127.0.0.1:${port}` });
    expect(await problem('wss://station.example/svc/v1')).toMatch(
      /^BAD_RESPONSE: the proxy 127\S+ spoke before .* login first, in a browser$/,
    );
    const portal = await listening(createHttpServer((_, response) => response.writeHead(511, { 'content-type': 'text/html' }).end()));
    const proxy = await connectProxy(portal);
    closing.push(proxy.close);
    environment({ HTTPS_PROXY: proxy.url });
    expect(await problem('ws://station.example/svc/v1')).toMatch(
      /^BAD_RESPONSE: station.example opens no WebSocket through the proxy 127\S+, it answers 511: this network wants a login first, in a browser$/,
    );
  });

  test.each([
    ['511 Network Authentication Required', / \(511\): this network may want a login first, in a browser$/],
    ['302 Found', / \(302\): this network may want a login first, in a browser$/],
    ['403 Forbidden', / \(403\)$/],
  ])('that answers CONNECT with a page and %s', async (status, sentence) => {
    const answer = `HTTP/1.1 ${status}\r\ncontent-type: text/html\r\n\r\n<h1>Terms</h1>`;
    const port = await listening(createServer((socket) => void socket.once('data', () => socket.end(answer)).on('error', () => {})));
    environment({ HTTPS_PROXY: `http://127.0.0.1:${port}` });
    expect(await problem('wss://station.example/svc/v1')).toMatch(sentence);
  });
});

function closeOf(socket: Socket): Promise<void> {
  socket.on('error', () => {});
  socket.resume();
  return new Promise((resolve) => socket.once('close', () => resolve()));
}
