/** Forwarded ports in virtual time, over UDP services: what stays, what is made again, and what ends them. */
import { beforeEach, describe, expect, test } from 'vitest';
import {
  type Connection,
  type ConnectionOptions,
  type ForwardedService,
  type ForwardingEvent,
  PortForwarding,
  type PortForwardingOptions,
  RemoteError,
  type SvcClient,
} from '../../../client/node.ts';
import type { DatagramLoss, DeviceConnection } from '../../../device/index.ts';
import type { BoundSocket } from '../../../platform/environment.ts';
import type { SimulatedHost } from '../../../testing/index.ts';
import type { DeviceUnderTest } from '../../support/fixture/devices-and-clients.ts';
import { SCT } from '../../support/fixture/identifiers.ts';
import { ProductFixture } from '../../support/fixture/products.ts';

const NAMES: ForwardedService = { kind: 'udp', id: 'names' };

let fixture: ProductFixture;
let under: DeviceUnderTest;
let phone: SimulatedHost;
let client: SvcClient;
let privateKey: string;
let verdict: boolean;
let events: ForwardingEvent[];
/** Open sessions of the device. */
let connections: Set<DeviceConnection>;

beforeEach(async () => {
  fixture = new ProductFixture();
  await fixture.station({ connectsPerDevice: 1000, connectsPerAddress: 1000 });
  under = await fixture.attached();
  phone = fixture.sim.host('phone');
  client = fixture.client(phone);
  privateKey = client.createPrivateKey();
  [verdict, events, connections] = [true, [], new Set()];
  under.device.onConnectionEvent((connection, event) => {
    if (event === 'OPENED') connections.add(connection);
    if (event === 'CLOSED') connections.delete(connection);
  });
  const service = fixture.sim.host('service');
  const socket: BoundSocket = await service.network.bind({
    port: 53,
    receive: (datagram, path) => socket.send(new Uint8Array(datagram), 0, datagram.length, path, () => {}),
  });
  for (const id of ['names', 'time'])
    under.device.addUdpTunnelService({ id, type: 'dns', host: service.addresses[0]!, port: 53, metadata: { id } });
  under.device.onAuthorizationRequest(() => verdict);
});

const run = (ms: number): Promise<boolean> => fixture.sim.run(ms);
const kinds = (): string[] => events.map(({ kind }) => kind);
const last = (): ForwardingEvent | undefined => events.at(-1);

async function connect(options: ConnectionOptions = {}): Promise<Connection> {
  const connection = fixture.connection({ PrivateKey: privateKey, DeviceFingerprint: under.device.deviceFingerprint, ...options }, client);
  await connection.connect();
  return connection;
}

async function open(services = [NAMES], options: Partial<PortForwardingOptions> = {}): Promise<PortForwarding> {
  return fixture.settle(opening(services, options));
}

async function opening(services = [NAMES], options: Partial<PortForwardingOptions> = {}): Promise<PortForwarding> {
  const connection = options.connection ?? (await connect());
  const given = {
    environment: phone,
    connection,
    connect: () => connect(),
    services,
    onEvent: (event: ForwardingEvent) => events.push(event),
  };
  return PortForwarding.open({ ...given, ...options });
}

/** A program on the phone that asks the port once. @returns the answers */
async function asked({ ports }: PortForwarding, index = 0): Promise<string[]> {
  const got: string[] = [];
  const socket = await phone.network.bind({ port: 0, host: '127.0.0.1', receive: (data) => got.push(new TextDecoder().decode(data)) });
  const question = new TextEncoder().encode('question');
  socket.send(question, 0, question.length, socket.path('127.0.0.1', ports[index]!.port), () => {});
  await run(500);
  socket.close();
  return got;
}

/** The device ends every connection. */
function disconnect(): void {
  for (const connection of connections) void connection.close();
}

test('several services have a port each, with the metadata that the device gives', { tags: ['slow'] }, async () => {
  const forwarding = await open([NAMES, { kind: 'udp', id: 'time', localPort: 1234 }]);
  expect(forwarding.ports).toMatchObject([
    { kind: 'udp', service: { id: 'names', type: 'dns', metadata: { id: 'names' } } },
    { kind: 'udp', port: 1234, service: { id: 'time' } },
  ]);
  expect([await asked(forwarding, 0), await asked(forwarding, 1)]).toEqual([['question'], ['question']]);
  expect(kinds()).toEqual(['connected']);
});

describe('the connection ends', () => {
  test('by the device: the port stays, and is connected again', { tags: ['slow'] }, async () => {
    const forwarding = await open();
    const { port } = forwarding.ports[0]!;
    expect(await asked(forwarding)).toEqual(['question']);
    disconnect();
    await run(20);
    expect(await asked(forwarding)).toEqual([]);
    await run(2_000);
    expect(kinds()).toEqual(['connected', 'lost', 'connected']);
    expect(forwarding.ports[0]!.port).toBe(port);
    expect(await asked(forwarding)).toEqual(['question']);
  });

  test('by the network: it rests, resumes, and after a longer outage is made again', { tags: ['slow'] }, async () => {
    const forwarding = await open([NAMES], { connection: await fixture.settle(connect({ KeepAliveProfile: 'live' })) });
    const cut = (loss: number): void => fixture.sim.link('phone', 'station', { delay: 10, loss });
    cut(1);
    await run(50_000);
    expect(last()).toMatchObject({ kind: 'resting', error: { code: 'TIMEOUT' } });
    cut(0);
    await run(5_000);
    expect(kinds().slice(-2)).toEqual(['resting', 'resumed']);
    expect(await asked(forwarding)).toEqual(['question']);
    cut(1);
    await run(180_000);
    expect(kinds()).not.toContain('ended');
    expect(last()).toMatchObject({ kind: 'lost' });
    cut(0);
    await fixture.sim.run(() => last()?.kind === 'connected', 120_000);
    expect(await asked(forwarding)).toEqual(['question']);
  });
});

test('pauses between attempts differ, and last at most half a minute', { tags: ['slow'] }, async () => {
  const attempts: number[] = [];
  const connect = async (): Promise<Connection> => {
    attempts.push(fixture.sim.now);
    throw new RemoteError('TIMEOUT', 'no device answers');
  };
  await open([NAMES], { connect });
  disconnect();
  await run(600_000);
  const pauses = attempts.slice(1).map((at, index) => at - attempts[index]!);
  expect(Math.max(...pauses)).toBeLessThanOrEqual(30_000);
  expect(Math.max(...pauses.slice(0, 3))).toBeLessThan(4_000);
  expect(attempts.length).toBeGreaterThan(25);
  expect(attempts.length).toBeLessThan(90);
  expect(new Set(pauses).size).toBe(pauses.length);
});

describe('forwarding ends for good, and its ports lead nowhere, with', () => {
  test.each<[string, () => void, string]>([
    ['a service that was removed', () => under.device.removeUdpTunnelService('names'), 'NOT_FOUND'],
    ['permission that was withdrawn', () => (verdict = false), 'FORBIDDEN'],
    ['a token that was withdrawn', () => under.device.removeServerConnectToken(SCT), 'NO_CHANNELS'],
  ])('%s', async (_, refuse, code) => {
    const forwarding = await open();
    refuse();
    await run(2_000);
    disconnect();
    await run(10_000);
    expect(last()).toMatchObject({ kind: 'ended', error: { code } });
    expect(await asked(forwarding)).toEqual([]);
    await run(120_000);
    expect(last()?.kind).toBe('ended');
    await fixture.settle(forwarding.close());
  });

  test('but not with a token that may be another one next time', async () => {
    await open([NAMES], { renewsToken: true });
    under.device.removeServerConnectToken(SCT);
    await run(2_000);
    disconnect();
    await run(10_000);
    expect(last()).toMatchObject({ kind: 'lost', error: { remoteChannelErrorCode: 'TOKEN_REJECTED' } });
    under.device.addServerConnectToken(SCT);
    await fixture.sim.run(() => last()?.kind === 'connected', 60_000);
  });
});

test('what a lossy link loses is reported at both ends after a minute, over successive connections', { tags: ['slow'] }, async () => {
  const atDevice: DatagramLoss[] = [];
  under.device.onDatagramLoss((loss) => atDevice.push(loss));
  const forwarding = await open();
  fixture.sim.link('phone', 'station', { delay: 10, loss: 0.2 });
  const socket = await phone.network.bind({ port: 0, host: '127.0.0.1', receive: () => {} });
  const path = socket.path('127.0.0.1', forwarding.ports[0]!.port);
  for (let i = 0; i < 100; i++) {
    socket.send(new Uint8Array(3_000), 0, 3_000, path, () => {});
    await run(50);
  }
  fixture.sim.link('phone', 'station', { delay: 10, loss: 0 });
  disconnect();
  await run(60_000);
  const atClient = events.flatMap((event) => (event.kind === 'datagrams-lost' ? [event.loss] : []));
  for (const losses of [atClient, atDevice]) {
    expect(losses).toHaveLength(1);
    expect(losses[0]).toMatchObject({ tooLong: 0, dropped: 0 });
    expect(losses[0]!.lost).toBeGreaterThan(20);
    expect(losses[0]!.incomplete).toBeGreaterThan(5);
  }
});

test('a flow that the device refuses is reported with the reason', async () => {
  const forwarding = await open();
  verdict = false;
  expect(await asked(forwarding)).toEqual([]);
  expect(last()).toMatchObject({ kind: 'refused', service: NAMES, error: { code: 'FORBIDDEN' } });
});

describe('nothing stays open when it cannot begin:', () => {
  test('more services than 32', async () => {
    const services = Array.from({ length: 33 }, () => NAMES);
    expect(await fixture.code(opening(services))).toBe('INVALID_ARGUMENT');
    const forwarding = await open(services.slice(1));
    expect(forwarding.ports).toHaveLength(32);
  });

  test('a port that is taken: the error names the service, and the earlier ports are free again', async () => {
    await phone.network.bind({ port: 1235, receive: () => {} });
    const services: ForwardedService[] = [
      { ...NAMES, localPort: 1234 },
      { kind: 'udp', id: 'time', localPort: 1235 },
    ];
    await expect(open(services)).rejects.toMatchObject({ code: 'PORT_IN_USE', service: { id: 'time' } });
    (await phone.network.bind({ port: 1234, receive: () => {} })).close();
  });

  test('a service that is not there', { tags: ['slow'] }, async () => {
    await expect(open([NAMES, { kind: 'tcp', id: 'names' }])).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });
});

test('after close it has neither port nor connection, and makes none', { tags: ['slow'] }, async () => {
  const forwarding = await open();
  const { port } = forwarding.ports[0]!;
  await fixture.settle(forwarding.close());
  await run(60_000);
  expect(kinds()).toEqual(['connected']);
  expect(connections.size).toBe(0);
  (await phone.network.bind({ port, receive: () => {} })).close();
  await fixture.settle(forwarding.close());
});
