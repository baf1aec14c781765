/**
 * TCP tunnels over loopback: a device and a client of this process, real UDP and TCP on free ports, no base station.
 */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type AddressInfo, connect, createServer, Server, type Socket } from 'node:net';
import { networkInterfaces } from 'node:os';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Connection } from '../../../client/node.ts';
import { type AuthorizationRequest, type Device, type Environment, nodeEnvironment, RemoteError } from '../../../device/index.ts';
import { PinnedAddresses } from '../../../device/tunnels/pinned-address.ts';
import { connectTcp, serviceRefusal } from '../../../device/tunnels/tcp.ts';
import { unsentBytes } from '../../../platform/node/unsent-bytes.ts';
import { StreamCode } from '../../../protocol/errors/index.ts';
import { eventually } from '../../support/eventually.ts';
import { LoopbackFixture } from '../../support/fixture/loopback.ts';

let device: Device;
let service: Server;
/** Sockets the service accepted. */
let accepted: Socket[];
let connection: Connection;
let asked: AuthorizationRequest[];
let verdict: (request: AuthorizationRequest) => boolean;

beforeEach(async () => {
  asked = [];
  accepted = [];
  verdict = () => true;
  service = createServer({ allowHalfOpen: true }, (socket) => {
    accepted.push(socket);
    socket.on('error', () => {});
    socket.pipe(socket);
  }).listen(0, '127.0.0.1');
  await once(service, 'listening');
  const fixture = new LoopbackFixture();
  const under = fixture.device({ environment: withNames() });
  ({ device } = under);
  device.onAuthorizationRequest((request) => {
    asked.push(request);
    return verdict(request);
  });
  await fixture.start(under);
  connection = await fixture.connected(under);
  device.addTcpTunnelService({ id: 'echo', type: 'tcp', host: '127.0.0.1', port: portOf(service), metadata: { floor: '2' } });
});

afterEach(() => {
  for (const socket of accepted) socket.destroy();
  service.close();
});

/** This host, with one name of its own instead of the system's resolver. */
function withNames(): Environment {
  const environment = nodeEnvironment();
  const resolve = async (host: string): Promise<string[]> => {
    if (host === 'echo.example') return ['169.254.169.254', '127.0.0.1'];
    throw new RemoteError('DNS', `${host} has no address`);
  };
  return { ...environment, network: { ...environment.network, resolve } };
}

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port;
}

async function open(localPort = 0) {
  const tunnel = connection.createTcpTunnel();
  await tunnel.open('echo', localPort);
  return tunnel;
}

async function dial(port: number): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  await once(socket, 'connect');
  socket.on('error', () => {});
  return socket;
}

/** Reads to the end. */
async function read(socket: Socket): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of socket) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

/** Resolves with the error code when the connection is reset. */
function broken(socket: Socket): Promise<string> {
  socket.resume();
  return new Promise((resolve) => {
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? ''));
    socket.once('end', () => resolve('end'));
  });
}

test('an answer before a reset arrives, 100 of 100, while uploads are under way', { tags: ['slow'] }, async () => {
  const answer = Buffer.alloc(100_000, 5);
  const early = createServer({ pauseOnConnect: true }, async (socket) => {
    socket.on('error', () => {});
    socket.write(answer);
    while ((await unsentBytes(socket)) > 0) await new Promise((resolve) => setImmediate(resolve));
    socket.resetAndDestroy();
  }).listen(0, '127.0.0.1');
  await once(early, 'listening');
  device.addTcpTunnelService({ id: 'early', type: 'tcp', host: '127.0.0.1', port: portOf(early) });
  const tunnel = connection.createTcpTunnel();
  await tunnel.open('early', 0);
  const results: Record<string, number> = {};
  for (let i = 0; i < 100; i++) {
    const socket = await dial(tunnel.getLocalPort());
    socket.write(Buffer.alloc(i % 20 === 0 ? 3_000_000 : i % 2 === 0 ? 200_000 : 1));
    let count = 0;
    socket.on('data', (data) => {
      count += data.length;
    });
    const error = await new Promise<NodeJS.ErrnoException>((resolve) => {
      socket.once('error', resolve).once('end', () => resolve(new Error('the end')));
    });
    socket.destroy();
    const outcome = `${count} bytes, ${error.code ?? error.message}`;
    results[outcome] = (results[outcome] ?? 0) + 1;
  }
  early.close();
  expect(results).toEqual({ '100000 bytes, ECONNRESET': 100 });
});

describe('an open tunnel', () => {
  test('carries bytes both ways, and the end of one direction alone', { tags: ['slow'] }, async () => {
    const tunnel = await open();
    const socket = await dial(tunnel.getLocalPort());
    const sent = Buffer.alloc(1_000_000, 'some bytes of a file ');
    socket.end(sent);
    expect((await read(socket)).equals(sent)).toBe(true);
  });

  test('carries several connections at a time, and each is authorized', { tags: ['slow'] }, async () => {
    const tunnel = await open();
    const sockets = await Promise.all([1, 2, 3].map(() => dial(tunnel.getLocalPort())));
    const texts = await Promise.all(
      sockets.map((socket, index) => {
        socket.end(`connection ${index}`);
        return read(socket);
      }),
    );
    expect(texts.map(String)).toEqual(['connection 0', 'connection 1', 'connection 2']);
    expect(asked.map(({ action }) => action)).toEqual(Array(4).fill('TcpTunnel:Connect'));
    expect(asked[3]?.attributes).toEqual({ 'TcpTunnel:ServiceId': 'echo', 'TcpTunnel:ServiceType': 'tcp' });
    expect(asked[3]?.connection.clientFingerprint).toBe(connection.getClientFingerprint());
    expect(asked[3]?.connection.isLocal).toBe(true);
  });

  test('continues when connections cannot be accepted', { tags: ['slow'] }, async () => {
    const listening = vi.spyOn(Server.prototype, 'listen');
    const tunnel = await open();
    const server = listening.mock.contexts[0] as Server;
    listening.mockRestore();
    for (let i = 0; i < 2; i++) server.emit('error', Object.assign(new Error('accept EMFILE'), { code: 'EMFILE' }));
    const socket = await dial(tunnel.getLocalPort());
    socket.end('still there');
    expect(String(await read(socket))).toBe('still there');
  });

  test('is closed: the port is free and its connections are reset', { tags: ['slow'] }, async () => {
    const tunnel = await open();
    const port = tunnel.getLocalPort();
    const socket = await dial(port);
    socket.write('x');
    await once(socket, 'data');
    const end = broken(socket);
    await tunnel.close();
    expect(await end).toBe('ECONNRESET');
    await expect(dial(port)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
    expect(() => tunnel.getLocalPort()).toThrow(expect.objectContaining({ code: 'INVALID_STATE' }));
  });

  test('ends with its connection', { tags: ['slow'] }, async () => {
    const tunnel = await open();
    const socket = await dial(tunnel.getLocalPort());
    socket.write('x');
    await once(socket, 'data');
    const end = broken(socket);
    await connection.close();
    expect(await end).toBe('ECONNRESET');
    await eventually(() => expect(accepted[0]?.destroyed).toBe(true));
  });

  test.skipIf(process.platform !== 'linux')(
    'asks an idle service whether it is still there (skipped: not Linux, which shows the timers of sockets)',
    { tags: ['slow'] },
    async () => {
      const tunnel = await open();
      const socket = await dial(tunnel.getLocalPort());
      socket.write('x');
      await once(socket, 'data');
      const port = (accepted[0] as Socket).remotePort as number;
      // proc(5): local address, remote address, state, queues, timer; 2 is keep-alive.
      const hex = port.toString(16).toUpperCase().padStart(4, '0');
      const timer = () =>
        new RegExp(`^ *\\d+: \\w+:${hex} \\w+:\\w+ \\w+ \\S+ (\\d+):`, 'm').exec(readFileSync('/proc/net/tcp', 'utf8'))?.[1];
      await eventually(() => expect(timer()).toBe('02'));
    },
  );

  test('resets each side when the other is reset', { tags: ['slow'] }, async () => {
    const tunnel = await open();
    const socket = await dial(tunnel.getLocalPort());
    socket.write('x');
    await once(socket, 'data');
    const end = broken(socket);
    accepted[0]?.resetAndDestroy();
    expect(await end).toBe('ECONNRESET');
    const other = await dial(tunnel.getLocalPort());
    other.write('x');
    await once(other, 'data');
    const serviceEnd = broken(accepted[1] as Socket);
    other.resetAndDestroy();
    expect(await serviceEnd).toBe('ECONNRESET');
  });
});

describe('services by name and over IPv6', () => {
  const addressOf = async (id: string): Promise<unknown> => {
    const { decodeTunnelService } = await import('../../../protocol/records/index.ts');
    return decodeTunnelService((await connection.request('GET', `/tcp-tunnels/services/${id}`)).bytes).host;
  };

  test('a name: clients see its address, and reach it', { tags: ['slow'] }, async () => {
    device.addTcpTunnelService({ id: 'named', type: 'tcp', host: 'echo.example', port: portOf(service) });
    expect(await addressOf('named')).toBe('127.0.0.1');
    const tunnel = connection.createTcpTunnel();
    await tunnel.open('named', 0);
    const socket = await dial(tunnel.getLocalPort());
    socket.end('by name');
    expect(String(await read(socket))).toBe('by name');
  });

  const TWO = [
    ['::1', '127.0.0.1'],
    ['127.0.0.1', '::1'],
  ];
  test.each(TWO.flatMap((order) => order.map((at) => [order, at] as const)))(
    'a name with the addresses %j, of which only %s listens',
    async (order, at) => {
      const server = createServer((socket) => socket.end()).listen({ port: 0, host: at, ipv6Only: at === '::1' });
      await once(server, 'listening');
      const addresses = new PinnedAddresses('localhost', async () => order);
      const reached = await connectTcp({ port: portOf(server) }, addresses);
      reached.abort();
      expect(await addresses.all()).toEqual([at, ...order.filter((each) => each !== at)]);
      server.close();
      await once(server, 'close');
    },
  );

  test('a name of which no address accepts: the refusal is named, and not that of an address which cannot be', async () => {
    const addresses = { all: async () => ['127.0.0.1', 'fe80::1%nowhere'] } as unknown as PinnedAddresses;
    const closed = portOf(service);
    service.close();
    await once(service, 'close');
    await expect(connectTcp({ port: closed }, addresses)).rejects.toMatchObject({ streamCode: StreamCode.SERVICE_REFUSED });
  });

  test('a name without an address: 5.03, and a tunnel to it does not open', async () => {
    device.addTcpTunnelService({ id: 'lost', type: 'tcp', host: 'nowhere.example', port: 1 });
    expect((await connection.request('GET', '/tcp-tunnels/services/lost')).status).toBe(503);
    await expect(connection.createTcpTunnel().open('lost')).rejects.toMatchObject({
      code: 'BAD_RESPONSE',
      message: 'the device answered 5.03 ("The host of the service does not resolve") to the request for a tunnel',
    });
  });

  test('a service that is not there: the client learns that it refuses connections', { tags: ['slow'] }, async () => {
    const { decodeTunnelService } = await import('../../../protocol/records/index.ts');
    const { streamPort } = decodeTunnelService((await connection.request('GET', '/tcp-tunnels/services/echo')).bytes);
    service.close();
    await expect(connection.openStream(streamPort).opened).rejects.toMatchObject({
      code: 'STOPPED',
      message: 'the service refuses connections (ECONNREFUSED)',
    });
  });

  test.each([
    ['ECONNREFUSED', StreamCode.SERVICE_REFUSED],
    ['ETIMEDOUT', StreamCode.SERVICE_UNREACHABLE],
    ['EHOSTUNREACH', StreamCode.SERVICE_UNREACHABLE],
    ['EMFILE', StreamCode.SERVICE_FAILED],
  ])('the system’s %s is reported as %i', (code, streamCode) => {
    expect(serviceRefusal(Object.assign(new Error('no'), { code }))).toMatchObject({ streamCode, message: 'no' });
  });

  test.each(['', '.', '..', 'a/b', 'x'.repeat(65)])('an id that fits no path is refused: %j', (id) => {
    const service = { id, type: 'tcp', host: '127.0.0.1', port: 1 };
    expect(() => device.addTcpTunnelService(service)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }));
    expect(() => device.addUdpTunnelService(service)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }));
  });

  test('metadata that changes while the device runs', async () => {
    const { decodeTunnelService } = await import('../../../protocol/records/index.ts');
    device.setTcpTunnelServiceMetadata('echo', { floor: '3', room: 'a' });
    expect(decodeTunnelService((await connection.request('GET', '/tcp-tunnels/services/echo')).bytes).metadata).toEqual({
      floor: '3',
      room: 'a',
    });
    expect(() => device.setTcpTunnelServiceMetadata('nothing', {})).toThrow(expect.objectContaining({ code: 'NOT_FOUND' }));
    const wrong = { floor: 3 } as unknown as Record<string, string>;
    expect(() => device.setTcpTunnelServiceMetadata('echo', wrong)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }));
  });

  const hasIpv6 = Object.values(networkInterfaces()).some((list) => list?.some(({ address }) => address === '::1'));
  test.skipIf(!hasIpv6)('an IPv6 address (skipped: this host has none)', { tags: ['slow'] }, async () => {
    const six = createServer((socket) => socket.pipe(socket)).listen(0, '::1');
    await once(six, 'listening');
    try {
      device.addTcpTunnelService({ id: 'six', type: 'tcp', host: '0:0::1', port: portOf(six) });
      expect(await addressOf('six')).toBe('::1');
      const tunnel = connection.createTcpTunnel();
      await tunnel.open('six', 0);
      const socket = await dial(tunnel.getLocalPort());
      socket.end('over IPv6');
      expect(String(await read(socket))).toBe('over IPv6');
    } finally {
      six.close();
    }
  });
});

describe('a tunnel refuses', () => {
  test('a service that does not exist, or is not allowed', { tags: ['slow'] }, async () => {
    await expect(connection.createTcpTunnel().open('nothing')).rejects.toMatchObject({ code: 'NOT_FOUND' });
    verdict = () => false;
    await expect(connection.createTcpTunnel().open('echo')).rejects.toMatchObject({ code: 'FORBIDDEN' });
  });

  test('a local port that is taken', { tags: ['slow'] }, async () => {
    await expect(open(portOf(service))).rejects.toMatchObject({ code: 'PORT_IN_USE' });
    const tunnel = connection.createTcpTunnel();
    await expect(tunnel.open('echo', portOf(service))).rejects.toMatchObject({ code: 'PORT_IN_USE' });
    await tunnel.open('echo', 0);
    await expect(tunnel.open('echo', 0)).rejects.toMatchObject({ code: 'INVALID_STATE' });
  });

  test('a connection when permission was withdrawn meanwhile', async () => {
    const tunnel = await open();
    verdict = () => false;
    expect(await broken(await dial(tunnel.getLocalPort()))).toBe('ECONNRESET');
    expect(accepted).toEqual([]);
  });

  test('a connection when the service does not answer', { tags: ['slow'] }, async () => {
    const tunnel = await open();
    service.close();
    expect(await broken(await dial(tunnel.getLocalPort()))).toBe('ECONNRESET');
  });

  test('connections above the limit of their type; open ones stay', { tags: ['slow'] }, async () => {
    device.limitTcpTunnelConnections('tcp', 1);
    const tunnel = await open();
    const first = await dial(tunnel.getLocalPort());
    first.write('x');
    await once(first, 'data');
    expect(await broken(await dial(tunnel.getLocalPort()))).toBe('ECONNRESET');
    device.limitTcpTunnelConnections('tcp', 0);
    first.write('y');
    expect(String((await once(first, 'data'))[0])).toBe('y');
    first.end();
  });

  test.each<[string, () => void]>([
    ['all', () => device.limitTunnelConnections(0)],
    ['each client', () => device.limitTunnelConnectionsPerClient(0)],
  ])('every connection where the limit for %s is none', { tags: ['slow'] }, async (_name, limit) => {
    limit();
    expect(await broken(await dial((await open()).getLocalPort()))).toBe('ECONNRESET');
    expect(accepted).toEqual([]);
  });

  test('all connections of a service that was removed', { tags: ['slow'] }, async () => {
    const tunnel = await open();
    const socket = await dial(tunnel.getLocalPort());
    socket.write('x');
    await once(socket, 'data');
    const end = broken(socket);
    device.removeTcpTunnelService('echo');
    expect(await end).toBe('ECONNRESET');
    expect(await broken(await dial(tunnel.getLocalPort()))).toBe('ECONNRESET');
    await expect(connection.createTcpTunnel().open('echo')).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });
});

describe('the three endpoints', () => {
  test('list and describe services', async () => {
    const { decodeTunnelService, decodeTunnelServiceIds } = await import('../../../protocol/records/index.ts');
    const list = await connection.request('GET', '/tcp-tunnels/services');
    expect([list.status, list.format]).toEqual([205, 60]);
    expect(decodeTunnelServiceIds(list.bytes)).toEqual(['echo']);
    for (const path of ['/tcp-tunnels/services/echo', '/tcp-tunnels/connect/echo']) {
      const one = await connection.request('GET', path);
      expect([one.status, one.format]).toEqual([205, 60]);
      const { streamPort, ...record } = decodeTunnelService(one.bytes);
      expect(record).toEqual({ id: 'echo', type: 'tcp', host: '127.0.0.1', port: portOf(service), metadata: { floor: '2' } });
      expect(streamPort).toBeGreaterThanOrEqual(0x8000_0000);
    }
    expect(asked.map(({ action }) => action)).toEqual(['TcpTunnel:ListServices', 'TcpTunnel:GetService', 'TcpTunnel:Connect']);
  });

  test('look a service up before they ask for permission', { tags: ['slow'] }, async () => {
    verdict = () => false;
    const status = async (path: string) => (await connection.request('GET', path)).status;
    expect(await status('/tcp-tunnels/services')).toBe(403);
    expect(await status('/tcp-tunnels/services/echo')).toBe(403);
    expect(await status('/tcp-tunnels/connect/echo')).toBe(403);
    expect(await status('/tcp-tunnels/services/nothing')).toBe(404);
    expect(await status('/tcp-tunnels/connect/nothing')).toBe(404);
    expect(asked).toHaveLength(3);
  });
});
