/**
 * UDP tunnels over loopback: a device and a client of this process, real UDP on free ports at both ends, no base
 * station.
 *
 * @module-tag slow
 */
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { networkInterfaces } from 'node:os';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Connection, UdpTunnel } from '../../../client/node.ts';
import type { AuthorizationRequest, Device } from '../../../device/index.ts';
import { decodeTunnelService, decodeTunnelServiceIds } from '../../../protocol/records/index.ts';
import { eventually } from '../../support/eventually.ts';
import { LoopbackFixture } from '../../support/fixture/loopback.ts';

let device: Device;
let connection: Connection;
let service: Socket;
let sockets: Socket[];
let asked: AuthorizationRequest[];
let verdict: boolean;

beforeEach(async () => {
  [sockets, asked, verdict] = [[], [], true];
  service = await echo('udp4', '127.0.0.1');
  const fixture = new LoopbackFixture();
  const under = fixture.device();
  ({ device } = under);
  device.onAuthorizationRequest((request) => {
    asked.push(request);
    return verdict;
  });
  await fixture.start(under);
  connection = await fixture.connected(under);
  device.addUdpTunnelService({ id: 'echo', type: 'udp', host: '127.0.0.1', port: service.address().port, metadata: { floor: '2' } });
});

afterEach(() => {
  for (const socket of sockets) socket.close();
});

async function bound(type: 'udp4' | 'udp6', address: string): Promise<Socket> {
  const socket = createSocket(type);
  socket.bind(0, address);
  await once(socket, 'listening');
  sockets.push(socket);
  return socket;
}

/** A service that sends back what it gets. */
async function echo(type: 'udp4' | 'udp6', address: string): Promise<Socket> {
  const socket = await bound(type, address);
  socket.on('message', (message, { port, address: from }) => socket.send(message, port, from));
  return socket;
}

async function open(id = 'echo'): Promise<UdpTunnel> {
  const tunnel = connection.createUdpTunnel();
  await tunnel.open(id);
  return tunnel;
}

/** A local program. @returns a function that sends a question through the tunnel and returns its answer */
async function program(tunnel: UdpTunnel): Promise<(question: Uint8Array) => Promise<Buffer>> {
  const socket = await bound('udp4', '127.0.0.1');
  return async (question) => {
    const answer = once(socket, 'message');
    socket.send(question, tunnel.getLocalPort(), '127.0.0.1');
    return (await answer)[0] as Buffer;
  };
}

test('a tunnel carries questions and answers of several programs', async () => {
  const tunnel = await open();
  const programs = await Promise.all([0, 1, 2].map(() => program(tunnel)));
  const answers = await Promise.all(programs.map((ask, index) => ask(Buffer.from(`question ${index}`))));
  expect(answers.map(String)).toEqual(['question 0', 'question 1', 'question 2']);
  expect(tunnel.stats()).toMatchObject({ flows: 3, sent: 3, received: 3, dropped: 0 });
});

test('a tunnel carries 1,000 datagrams of every size', async () => {
  const tunnel = await open();
  const ask = await program(tunnel);
  for (let i = 0; i < 1_000; i++) {
    const question = Buffer.alloc(i % 250 === 249 ? 65_507 : (i * 7) % 2_000, i & 0xff);
    expect((await ask(question)).equals(question)).toBe(true);
  }
  expect(tunnel.stats()).toMatchObject({ flows: 1, sent: 1_000, received: 1_000, tooLong: 0, dropped: 0 });
});

const hasIpv6 = Object.values(networkInterfaces()).some((list) => list?.some(({ address }) => address === '::1'));
test.skipIf(!hasIpv6)('a tunnel reaches a service at an IPv6 address (skipped: this host has none)', async () => {
  const six = await echo('udp6', '::1');
  device.addUdpTunnelService({ id: 'six', type: 'udp', host: '::1', port: six.address().port });
  const ask = await program(await open('six'));
  expect(String(await ask(Buffer.from('over IPv6')))).toBe('over IPv6');
});

test('a flow accepts datagrams from its service alone', async () => {
  let flowPort = 0;
  service.on('message', (_, { port }) => {
    flowPort = port;
  });
  const tunnel = await open();
  const ask = await program(tunnel);
  await ask(Buffer.from('one'));
  const stranger = await bound('udp4', '127.0.0.1');
  await new Promise((resolve) => stranger.send('forged', flowPort, '127.0.0.1', resolve));
  expect(String(await ask(Buffer.from('two')))).toBe('two');
  expect(device.udpTunnelServiceStats('echo')).toEqual({ flows: 1, sent: 2, received: 2, tooLong: 0, dropped: 0, incomplete: 0 });
});

test('a flow is reset when the service is gone', async () => {
  const gone = createSocket('udp4').bind(0, '127.0.0.1');
  await once(gone, 'listening');
  const { port } = gone.address();
  await new Promise<void>((resolve) => gone.close(() => resolve()));
  device.addUdpTunnelService({ id: 'gone', type: 'udp', host: '127.0.0.1', port });
  const tunnel = await open('gone');
  const socket = await bound('udp4', '127.0.0.1');
  socket.send('x', tunnel.getLocalPort(), '127.0.0.1');
  await eventually(() => expect(tunnel.stats()).toMatchObject({ flows: 0, flowsOpened: 1, flowsFailed: 1 }));
  expect(device.udpTunnelServiceStats('gone').flows).toBe(0);
});

test('a tunnel refuses a port that is taken, and opens it once it is free', async () => {
  const tunnel = await open();
  const port = tunnel.getLocalPort();
  await expect(connection.createUdpTunnel().open('echo', port)).rejects.toMatchObject({ code: 'PORT_IN_USE' });
  await tunnel.close();
  const again = connection.createUdpTunnel();
  await again.open('echo', port);
  expect(again.getLocalPort()).toBe(port);
});

describe('the three endpoints', () => {
  test('list and describe services, apart from those of TCP', async () => {
    const list = await connection.request('GET', '/udp-tunnels/services');
    expect([list.status, list.format]).toEqual([205, 60]);
    expect(decodeTunnelServiceIds(list.bytes)).toEqual(['echo']);
    device.setUdpTunnelServiceMetadata('echo', { floor: '3' });
    for (const path of ['/udp-tunnels/services/echo', '/udp-tunnels/connect/echo']) {
      const { streamPort, ...record } = decodeTunnelService((await connection.request('GET', path)).bytes);
      const { port } = service.address();
      expect(record).toEqual({ id: 'echo', type: 'udp', host: '127.0.0.1', port, metadata: { floor: '3' }, lost: 0 });
      expect(streamPort).toBeGreaterThanOrEqual(0x8000_0000);
    }
    expect(decodeTunnelServiceIds((await connection.request('GET', '/tcp-tunnels/services')).bytes)).toEqual([]);
    const actions = ['UdpTunnel:ListServices', 'UdpTunnel:GetService', 'UdpTunnel:Connect', 'TcpTunnel:ListServices'];
    expect(asked.map(({ action }) => action)).toEqual(actions);
    expect(asked[1]?.attributes).toEqual({ 'UdpTunnel:ServiceId': 'echo', 'UdpTunnel:ServiceType': 'udp' });
  });

  test('look a service up before they ask for permission', async () => {
    verdict = false;
    const status = async (path: string) => (await connection.request('GET', path)).status;
    for (const path of ['/udp-tunnels/services', '/udp-tunnels/services/echo', '/udp-tunnels/connect/echo'])
      expect(await status(path)).toBe(403);
    for (const path of ['/udp-tunnels/services/nothing', '/udp-tunnels/connect/nothing']) expect(await status(path)).toBe(404);
    expect(asked).toHaveLength(3);
  });
});
