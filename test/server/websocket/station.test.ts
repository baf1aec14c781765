/** WebSockets of a base station over real sockets: upgrades, slots, refusals and closes, and REST beside them. */
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { get } from 'node:http';
import { get as getSecurely } from 'node:https';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect as connectSecurely } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { WebSocket } from 'ws';
import { silentLog } from '../../../platform/environment.ts';
import { nodeEnvironment } from '../../../platform/node/index.ts';
import { encodeAttachRequest } from '../../../protocol/control/index.ts';
import { Host } from '../../../runtime/host/index.ts';
import { SharedQueue, WebSocketSocket } from '../../../runtime/websocket/index.ts';
import { type RunningBasestation, type StartOptions, type StationSettings, startBasestation } from '../../../server/index.ts';
import { eventually } from '../../support/eventually.ts';

let parent: string;
/** The base station of most tests; a test with other settings starts its own. */
let shared: RunningBasestation;
let station: RunningBasestation;
let stations = 0;
const warn = vi.fn();
const sockets: { terminate?(): void; destroy?(): void }[] = [];

beforeAll(async () => {
  parent = mkdtempSync(join(tmpdir(), 'svc-websocket-'));
  shared = await startWith('shared', {}, { host: '0.0.0.0' });
});
beforeEach(() => {
  station = shared;
  warn.mockClear();
});
afterEach(async () => {
  for (const socket of sockets.splice(0)) (socket.terminate ?? socket.destroy)!.call(socket);
  if (station !== shared) await station.close();
  else await eventually(() => expect(shared.stats()).toMatchObject({ webSockets: 0 }));
});
afterAll(async () => {
  await shared.close();
  rmSync(parent, { recursive: true });
});

/** Starts a base station for this test. */
async function start(settings: Partial<StationSettings> = {}, options: Partial<StartOptions> = {}): Promise<void> {
  station = await startWith(`own-${++stations}`, settings, options);
}

function startWith(name: string, settings: Partial<StationSettings>, options: Partial<StartOptions>): Promise<RunningBasestation> {
  return startBasestation({
    data: join(parent, name),
    port: 0,
    host: '127.0.0.1',
    log: { ...silentLog, warn },
    // WebSockets have no session in most tests, so the session timeout must not close them.
    settings: { connections: 16, stunPort: 0, webSocketTimeout: 600_000, ...settings },
    ...options,
  });
}

interface Opened {
  readonly socket: WebSocket;
  /** Resolves with the close code. */
  readonly closed: Promise<number>;
}

/** @returns the HTTP status of a refusal */
async function open(
  options: { path?: string; protocol?: string; headers?: Record<string, string>; from?: string } = {},
): Promise<Opened | number> {
  const { path = '/svc/v1', protocol = 'svc.1', headers = {}, from } = options;
  const local = from === undefined ? {} : { localAddress: from };
  const socket = new WebSocket(`ws://127.0.0.1:${station.port}${path}`, [protocol], { headers, perMessageDeflate: false, ...local });
  sockets.push(socket);
  const closed = new Promise<number>((resolve) => socket.on('close', resolve));
  return new Promise((resolve) => {
    socket.on('error', () => resolve(0));
    socket.on('unexpected-response', (request, response) => {
      resolve(response.statusCode!);
      request.destroy();
    });
    socket.on('open', () => resolve({ socket, closed }));
  });
}

async function opened(options: Parameters<typeof open>[0] = {}): Promise<Opened> {
  const result = await open(options);
  if (typeof result === 'number') throw new Error(`refused with ${result}`);
  return result;
}

function statusOf(path: string, host = '127.0.0.1'): Promise<number> {
  return new Promise((resolve, reject) => {
    get({ host, port: station.port, path, agent: false }, (response) => resolve(response.resume().statusCode!)).on('error', reject);
  });
}

async function raw(from = '127.0.0.1'): Promise<Socket> {
  const socket = connect({ port: station.port, host: '127.0.0.1', localAddress: from });
  sockets.push(socket);
  socket.on('error', () => {});
  await once(socket, 'connect');
  return socket;
}

/** Header of a client's frame, with mask 0. */
function frame(opcode: number, length: number, final = true): Buffer {
  const first = (final ? 0x80 : 0) | opcode;
  if (length < 126) return Buffer.from([first, 0x80 | length, 0, 0, 0, 0]);
  const header = Buffer.alloc(14);
  header[0] = first;
  header[1] = 0xff;
  header.writeBigUInt64BE(BigInt(length), 2);
  return header;
}

const tcpOf = (socket: WebSocket): Socket => (socket as unknown as { _socket: Socket })._socket;

describe('an upgrade', () => {
  it.each([
    ['another path', { path: '/svc/v2' }, 404],
    ['another subprotocol', { protocol: 'svc.2' }, 400],
    [
      'tokens and a foreign Origin, which are ignored',
      {
        path: '/svc/v1?token=a',
        headers: { origin: 'https://evil.example', cookie: 'a=b', authorization: 'Bearer a', host: 'evil.example' },
      },
      0,
    ],
  ])('with %s', async (_, options, status) => {
    const result = await open(options);
    if (status !== 0) expect(result).toBe(status);
    else expect((result as Opened).socket.protocol).toBe('svc.1');
  });

  it('is refused with a sentence, and a request without an upgrade gets 426', async () => {
    const socket = await raw();
    socket.write(
      'GET /svc/v1 HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n',
    );
    const [answer] = (await once(socket, 'data')) as [Buffer];
    expect(answer.toString()).toMatch(/^HTTP\/1.1 400 Bad Request\r\n.*Offer the subprotocol svc\.1\.$/s);
    expect([await statusOf('/svc/v1'), await statusOf('/health')]).toEqual([426, 200]);
    expect(station.stats().webSockets).toBe(0);
  });
});

/**
 * Returns everything that answers a request offering cleartext HTTP/2, as curl and Java do, up to the end of the
 * connection.
 */
async function offering(socket: Socket, line: string, body = '', rest: () => unknown = () => statusOf('/health')): Promise<string> {
  const offer = 'Connection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA';
  const content = body === '' ? '' : `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`;
  socket.write(`${line} HTTP/1.1\r\nHost: a\r\n${offer}\r\n${content}\r\n${body.slice(0, 5)}`);
  let answer = '';
  socket.on('data', (data) => {
    answer += data;
  });
  const closed = once(socket, 'close');
  if (body !== '') {
    // By then the server has read the first part.
    await rest();
    socket.write(body.slice(5));
  }
  await closed;
  return answer;
}

describe('an offer of another upgrade is ignored', () => {
  it('and the request answered', async () => {
    expect(await offering(await raw(), 'GET /health')).toMatch(/^HTTP\/1\.1 200 OK\r\n.*connection: close/is);
    expect(await offering(await raw(), 'GET /svc/v1')).toMatch(
      /^HTTP\/1\.1 426 .*upgrade: websocket.*a proxy in front has to .* pass on the headers Upgrade and Connection/is,
    );
    expect(await offering(await raw(), 'GET /nothing')).toMatch(/^HTTP\/1\.1 404 .*nothing at this method and path/is);
    expect(station.stats().webSockets).toBe(0);
  });

  it('with its body', async () => {
    const answer = await offering(await raw(), 'POST /nothing', '{"a": 1} no JSON');
    expect(answer).toMatch(/^HTTP\/1\.1 400 .*syntax_error/is);
  });

  it('and each connection counts once', async () => {
    const clients = await Promise.all(Array.from({ length: 50 }, () => raw()));
    let rest: Promise<number> | undefined;
    const health = (): Promise<number> => (rest ??= statusOf('/health'));
    const answers = await Promise.all(clients.map((socket) => offering(socket, 'POST /nothing', '{"a": 1}', health)));
    expect(answers.filter((answer) => / 404 /.test(answer))).toHaveLength(50);
  });
});

describe('WebSockets have their own slots', () => {
  it('per address and in all; REST is answered beside them, and a slot is freed at once', { tags: ['slow'] }, async () => {
    await start({ webSockets: 80, webSocketsPerAddress: 70 });
    const first = await Promise.all(Array.from({ length: 70 }, () => opened()));
    expect(await open()).toBe(503);
    for (let i = 0; i < 10; i++) await opened({ from: '127.0.0.2' });
    expect(await open({ from: '127.0.0.3' })).toBe(503);
    expect([await statusOf('/health'), station.stats().webSockets, station.stats().webSocketsRefused]).toEqual([200, 80, 2]);
    first[0]!.socket.close();
    await first[0]!.closed;
    await eventually(() => opened({ from: '127.0.0.3' }));
  });

  it('and clients that never finish the upgrade take none of them, nor of REST', { tags: ['slow'] }, async () => {
    const slow = await Promise.all(Array.from({ length: 100 }, (_, i) => raw(`127.0.1.${i % 2}`)));
    for (const socket of slow) socket.write('GET /svc/v1 HTTP/1.1\r\n');
    await opened();
    expect([await statusOf('/health'), station.stats().webSockets]).toEqual([200, 1]);
  });

  it('and closing the station closes them with 1001', { tags: ['slow'] }, async () => {
    await start();
    const all = await Promise.all([opened(), opened()]);
    await station.close();
    expect(await Promise.all(all.map(({ closed }) => closed))).toEqual([1001, 1001]);
  });
});

/** Sends byte by byte, each in its own read, until it is closed or long enough. */
async function crumbs(socket: Socket): Promise<void> {
  socket.setNoDelay();
  socket.write(frame(2, 65_535));
  for (let n = 0; n < 600 && socket.writable; n++) {
    socket.write(Buffer.alloc(1));
    await new Promise(setImmediate);
  }
}

describe('bytes that are not a packet', () => {
  it.each([
    ['text', (socket: WebSocket) => socket.send('hello'), 1003],
    ['65,536 bytes', (socket: WebSocket) => socket.send(new Uint8Array(65_536)), 1009],
    ['pings in floods', (socket: WebSocket) => Array.from({ length: 60 }, () => socket.ping()), 1008],
    ['pongs in floods', (socket: WebSocket) => Array.from({ length: 60 }, () => socket.pong()), 1008],
    [
      'endless fragments',
      (socket: WebSocket) => {
        const tcp = tcpOf(socket);
        tcp.write(frame(2, 0, false));
        for (let i = 0; i < 100; i++) tcp.write(frame(0, 0, false));
      },
      1008,
    ],
    ['a message in tiny pieces', (socket: WebSocket) => void crumbs(tcpOf(socket)), 1008],
    ['a frame that claims to be large', (socket: WebSocket) => tcpOf(socket).write(frame(2, 2 ** 40)), 1009],
  ])('close the connection: %s', async (_, send, code) => {
    const { socket, closed } = await opened();
    const { webSocketMalformed = 0 } = station.stats();
    send(socket);
    expect(await closed).toBe(code);
    await eventually(() => expect(station.stats()).toMatchObject({ webSockets: 0, webSocketMalformed: webSocketMalformed + 1 }));
  });

  it('are dropped when empty or garbage, and a ping is answered', { tags: ['slow'] }, async () => {
    const { socket } = await opened();
    const { webSocketMalformed = 0 } = station.stats();
    socket.send(new Uint8Array(0));
    socket.send(new Uint8Array(65_535).fill(0x80));
    socket.ping();
    await once(socket, 'pong');
    expect([socket.readyState, station.stats()]).toMatchObject([
      WebSocket.OPEN,
      { webSockets: 1, webSocketMalformed: webSocketMalformed + 1 },
    ]);
  });
});

describe('behind proxies', () => {
  it('each client has the slots of its own address if the proxy is trusted', { tags: ['slow'] }, async () => {
    await start({ webSocketsPerAddress: 1 }, { trustedProxies: ['127.0.0.0/8'] });
    await opened({ headers: { 'x-forwarded-for': '203.0.113.1' } });
    await opened({ headers: { 'x-forwarded-for': '203.0.113.1, 203.0.113.2' } });
    expect(await open({ headers: { 'x-forwarded-for': '203.0.113.2' } })).toBe(503);
  });

  it('all clients share the slots of an untrusted proxy, which is logged once', { tags: ['slow'] }, async () => {
    await start({ webSocketsPerAddress: 2 });
    await opened({ headers: { 'x-forwarded-for': '203.0.113.1' } });
    await opened({ headers: { forwarded: 'for=203.0.113.2' } });
    expect(await open({ headers: { 'x-forwarded-for': '203.0.113.3' } })).toBe(503);
    expect(warn.mock.calls.filter(([line]) => /--trusted-proxy/.test(line))).toHaveLength(1);
  });
});

it('over TLS REST and WebSockets share a port, and a WebSocket takes no slot of HTTP', { tags: ['slow'] }, async () => {
  const fixture = (name: string): string => fileURLToPath(new URL(`../fixtures/localhost.${name}.pem`, import.meta.url));
  await start({}, { tls: { certFile: fixture('cert'), keyFile: fixture('key') } });
  // More than HTTP's slots of one address.
  for (let i = 0; i < 70; i++) {
    const socket = new WebSocket(`wss://127.0.0.1:${station.port}/svc/v1`, ['svc.1'], { rejectUnauthorized: false });
    sockets.push(socket);
    await once(socket, 'open');
  }
  const status = await new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port: station.port, path: '/health', agent: false, rejectUnauthorized: false };
    getSecurely(options, (response) => resolve(response.resume().statusCode)).on('error', reject);
  });
  expect([status, station.stats().webSockets]).toEqual([200, 70]);
  const tls = connectSecurely({ socket: await raw(), rejectUnauthorized: false });
  expect(await offering(tls, 'GET /health')).toMatch(/^HTTP\/1\.1 200 OK/);
});

describe('without TLS', () => {
  it('an address that is not loopback serves only WebSockets', async ({ skip }) => {
    const environment = nodeEnvironment();
    const outside = environment.network.interfaces!()
      .flatMap(({ addresses }) => addresses)
      .map((text) => text.split('/')[0]!)
      .find((text) => !text.includes(':'));
    expect(station.http).toMatchObject({ host: '127.0.0.1', secure: false });
    if (outside === undefined) return skip('needs an address besides loopback');
    expect([
      await statusOf('/health'),
      await statusOf('/health', outside),
      await statusOf('/v1/x', outside),
      await statusOf('/svc/v1', outside),
    ]).toEqual([200, 404, 404, 426]);
    const socket = new WebSocket(`ws://${outside}:${station.port}/svc/v1`, ['svc.1']);
    sockets.push(socket);
    await once(socket, 'open');
  });

  it('REST may have a separate address, beside WebSockets', { tags: ['slow'] }, async () => {
    await start({}, { host: '127.0.0.2', httpHost: '127.0.0.1' });
    expect([await statusOf('/health'), await statusOf('/health', '127.0.0.2'), await statusOf('/svc/v1', '127.0.0.2')]).toEqual([
      200, 404, 426,
    ]);
    await opened();
  });
});

it('a host connects over a WebSocket, which has no observed UDP address', { tags: ['slow'] }, async () => {
  const environment = nodeEnvironment();
  const host = await Host.open(environment, { identity: environment.crypto.generateKey(), binds: [] });
  const { socket, closed } = await opened();
  const pipe = {
    index: environment.network.nextIndex!(),
    address: '127.0.0.1',
    port: station.port,
    proxy: null,
    send: (message: Uint8Array, sent: () => void) => socket.send(message, sent),
    close: () => socket.close(),
  };
  const own: WebSocketSocket = new WebSocketSocket(pipe, {
    clock: environment.clock,
    receive: host.datagrams.receive,
    closed: (error) => host.sockets.drop(own, error),
    queue: new SharedQueue(),
  });
  socket.on('message', (data: Buffer) => own.deliver(data));
  socket.on('close', () => own.ended({ code: 'CLOSED', message: 'gone' } as never));
  host.sockets.adopt(own, true);
  const session = await host.dials.connect({ path: own.path, name: 'station', pin: station.fingerprint });
  const attach = encodeAttachRequest({
    svcVersion: 'test',
    productId: 'pr-none',
    deviceId: 'de-none',
    tokens: null,
    redirected: 0,
  } as never);
  expect((await session.request({ method: 'POST', path: '/device/attach', contentFormat: 60, payload: attach })).status).toBe(404);
  expect((await session.request({ method: 'GET', path: '/client/address' })).status).toBe(404);
  expect(station.stats()).toMatchObject({ webSockets: 1, sessions: 1 });
  await host.close();
  expect(await closed).not.toBe(1008);
});
