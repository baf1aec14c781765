/**
 * Client, device and base station in this process over real sockets, where UDP to the station is dropped: they use
 * WebSockets, also by CONNECT. The tests take seconds of real time, in which UDP stays silent.
 * @module-tag slow
 */
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { get } from 'node:http';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { type Connection, type ConnectionOptions, SvcClient } from '../../client/node.ts';
import { Device } from '../../device/index.ts';
import { type Environment, silentLog } from '../../platform/environment.ts';
import { nodeEnvironment } from '../../platform/node/index.ts';
import { type RunningBasestation, startBasestation } from '../../server/index.ts';
import { ids, SCT } from '../support/fixture/identifiers.ts';
import { connectProxy } from '../support/https-server.ts';
import { registerInDirectory } from '../support/registered-device.ts';

/** Capacity of the base station for WebSockets. */
const PLACES = 200;

let folder: string;
let station: RunningBasestation;
let device: Device;
const ends: (() => unknown)[] = [];

/** Also of the device. */
let isDeviceBlocked = true;

/** UDP to the port of the station is dropped here. */
function withoutUdp(isBlocked = () => true): Environment {
  const environment = nodeEnvironment();
  const { network } = environment;
  return {
    ...environment,
    network: {
      ...network,
      bind: async (options) => {
        const socket = await network.bind(options);
        const { send } = socket;
        socket.send = (buffer, offset, length, path, released) => {
          if (path.port === station.port && isBlocked()) setImmediate(released, offset);
          else send.call(socket, buffer, offset, length, path, released);
        };
        return socket;
      },
    },
  };
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-udp-blocked-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

beforeEach(async () => {
  const data = await mkdtemp(join(folder, 'station-'));
  isDeviceBlocked = true;
  device = new Device({ environment: withoutUdp(() => isDeviceBlocked), ...ids, localPort: 0, p2pPort: 0 });
  device.setPrivateKey(device.createPrivateKey());
  await registerInDirectory(data, device.deviceFingerprint);
  station = await startBasestation({
    data,
    port: 0,
    host: '127.0.0.1',
    log: silentLog,
    // However slow the machine is, strangers stay for the whole test.
    settings: { connections: 16, webSockets: PLACES, webSocketTimeout: 600_000, stunPort: 0 },
  });
  ends.push(() => station.close());
});
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

const serverUrl = (): string => `https://127.0.0.1:${station.port}`;

async function attached(): Promise<void> {
  device.setServerUrl(serverUrl());
  device.setServerFingerprint(station.fingerprint);
  device.addServerConnectToken(SCT);
  device.addCoapResource('POST', '/echo', ({ payload }) => ({ status: 205, payload }));
  const done = new Promise<void>((resolve) => void device.onDeviceEvent((event) => event === 'ATTACHED' && resolve()));
  await device.start();
  ends.push(() => device.close());
  await done;
}

async function connected(client: SvcClient, options: ConnectionOptions = {}): Promise<Connection> {
  const connection = client.createConnection();
  connection.updateOptions({
    PrivateKey: client.createPrivateKey(),
    ProductId: ids.productId,
    DeviceId: ids.deviceId,
    ServerUrl: serverUrl(),
    ServerFingerprint: station.fingerprint,
    ServerConnectToken: SCT,
    DeviceFingerprint: device.deviceFingerprint,
    Local: false,
    Rendezvous: false,
    ...options,
  });
  await connection.connect();
  return connection;
}

async function echoes(connection: Connection): Promise<void> {
  const payload = new Uint8Array(200_000).map((_, i) => i & 0xff);
  const { status, bytes } = await connection.post('/echo', payload);
  expect(status).toBe(205);
  expect(new Uint8Array(bytes)).toEqual(payload);
}

test('device and client work over WebSockets where UDP to the base station is dropped', async () => {
  await attached();
  const client = SvcClient.create({ environment: withoutUdp(), maxConnections: 8 });
  ends.push(() => client.stop());
  const connection = await connected(client);
  await echoes(connection);
  expect(connection.paths().station).toMatchObject({ over: 'websocket', address: '127.0.0.1', port: station.port, proxy: null });
  expect(station.stats()).toMatchObject({ webSockets: 2 });

  // Another URL, so that the previous channel cannot be used. The client already knows that UDP is blocked.
  const url = `ws://127.0.0.1:${station.port}/svc/v1`;
  const proxy = await connectProxy(station.port, 'me:secret');
  ends.push(proxy.close, () => delete process.env.HTTPS_PROXY);
  process.env.HTTPS_PROXY = proxy.url.replace('//', '//me:wrongpass@');
  const refused = await failure(connected(client, { ServerWebSocketUrl: url, DtlsHelloTimeout: 500 }));
  expect(refused).toMatch(/no base station answers .*; nor over a WebSocket: the proxy 127\S+ refused .*407.*name and password/);
  expect(refused).not.toContain('wrongpass');

  process.env.HTTPS_PROXY = proxy.url.replace('//', '//me:secret@');
  const through = await connected(client, { ServerWebSocketUrl: url });
  await echoes(through);
  expect(through.paths().station).toMatchObject({ over: 'websocket', proxy: new URL(proxy.url).host });
  expect(JSON.stringify(through.paths())).not.toContain('secret');
  expect(proxy.asked).toEqual([`127.0.0.1:${station.port}`]);
});

/** A stranger's socket: idle after the upgrade, or with the upgrade unfinished. */
async function stranger(n: number, isFinished: boolean): Promise<Socket> {
  const socket = connect({ host: '127.0.0.1', port: station.port, localAddress: `127.0.1.${n % 8}` }).on('error', () => {});
  ends.push(() => socket.destroy());
  const head = 'GET /svc/v1 HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-protocol: svc.1\r\n';
  socket.write(isFinished ? `${head}sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n` : head);
  await (isFinished ? once(socket, 'data') : once(socket, 'connect'));
  return socket;
}

/** Sends pings, and reads nothing. */
function pings(socket: Socket): void {
  socket.pause();
  for (let n = 0; n < 15; n++) socket.write(Buffer.from([0x89, 0x80, 0, 0, 0, 0]));
}

/** Opens `idle` strangers with a WebSocket, one of which does not read, and 60 that never finish the upgrade. */
async function strangers(idle: number): Promise<void> {
  const [first] = await Promise.all(Array.from({ length: idle }, (_, n) => stranger(n, true)));
  await Promise.all(Array.from({ length: 60 }, (_, n) => stranger(n, false)));
  pings(first!);
  expect(station.stats().webSockets).toBe(idle);
}

test.each([PLACES, PLACES / 2])('beside %i strangers on WebSockets, of 200, other peers are served', async (idle) => {
  isDeviceBlocked = idle === PLACES;
  await strangers(idle);
  await attached();
  const [byUdp, blocked] = [nodeEnvironment(), withoutUdp()].map((environment) => SvcClient.create({ environment, maxConnections: 8 }));
  for (const client of [byUdp!, blocked!]) {
    ends.push(() => client.stop());
    await echoes(await connected(client));
  }
  expect(await status('/health')).toBe(200);
  // When they hold all slots, the oldest are closed.
  const isFull = idle === PLACES;
  expect(station.stats()).toMatchObject({ webSockets: isFull ? PLACES : idle + 1, webSocketsUnused: isFull ? 2 : 0 });
});

function status(path: string): Promise<number> {
  return new Promise((resolve, reject) => {
    get({ host: '127.0.0.1', port: station.port, path, agent: false }, (response) => resolve(response.resume().statusCode!)).on(
      'error',
      reject,
    );
  });
}

/** Returns why the remote channel failed. */
function failure(connecting: Promise<unknown>): Promise<string> {
  return connecting.then(
    () => 'connected',
    ({ cause }: { cause?: { remote?: Error } }) => String(cause?.remote?.message),
  );
}
