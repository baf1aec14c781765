/**
 * Connects over the local network: phone, devices and strangers in one simulated network, the base station elsewhere.
 */
import { beforeEach, describe, expect, test } from 'vitest';
import { connectLocal } from '../../../client/connect/local.ts';
import { type Connection, type ConnectionOptions, SvcClient } from '../../../client/node.ts';
import type { DeviceOptions } from '../../../device/index.ts';
import { type DnsMessage, dnsResponse, serviceRecords } from '../../../protocol/discovery/index.ts';
import { type ErrorCode, RemoteError } from '../../../protocol/errors/index.ts';
import type { MdnsBrowser } from '../../../runtime/discovery/index.ts';
import type { Host } from '../../../runtime/host/index.ts';
import type { SimulatedHost } from '../../../testing/index.ts';
import type { DeviceUnderTest } from '../../support/fixture/devices-and-clients.ts';
import { ids, SCT, SERVER_URL } from '../../support/fixture/identifiers.ts';
import { ProductFixture } from '../../support/fixture/products.ts';
import { recordEvents } from '../../support/recorded-events.ts';
import { ADMITTED, asked } from '../stand-in.ts';

const HOME = '198.51.100';
const SPOOFED_PORT = 1_000;
const PIN = 'ab'.repeat(32);

let fixture: ProductFixture;
let phone: SimulatedHost;
let client: SvcClient;
/** Hosts at home. */
let members: SimulatedHost[];
beforeEach(() => {
  fixture = new ProductFixture();
  members = [];
  phone = member('phone');
  client = fixture.client(phone);
});

/** A host at home, a millisecond from the others there. */
function member(role: string): SimulatedHost {
  const host = fixture.host(role, { addresses: [`${HOME}.${members.length + 1}/24`] });
  for (const other of members) fixture.sim.link(host.name, other.name, { delay: 1 });
  members.push(host);
  return host;
}

/** A device at home, announced; also attached if there is a base station. */
async function atHome(options: DeviceOptions & { registered?: boolean } = {}): Promise<DeviceUnderTest> {
  const under = await fixture.device({ environment: member('device'), ...options });
  under.device.enableMdns();
  await fixture.start(under);
  await fixture.sim.run(3_000);
  return under;
}

/** Without a base station. */
function local(options: ConnectionOptions = {}): Connection {
  const connection = client.createConnection();
  const { productId: ProductId, deviceId: DeviceId } = ids;
  connection.updateOptions({ PrivateKey: client.createPrivateKey(), ProductId, DeviceId, Remote: false, ...options });
  return connection;
}

/** Through the base station, too. */
const both = (options: ConnectionOptions = {}): Connection => fixture.connection(options, client);

const codes = (connection: Connection): string[] => [
  connection.getLocalChannelErrorCode(),
  connection.getRemoteChannelErrorCode(),
  connection.getDirectCandidatesChannelErrorCode(),
];

/** Type or error code, the three channels, and the duration in ms. */
type Outcome = [result: string, channels: string[], took: number];

/** Begins a connect. */
async function attempt(connection: Connection): Promise<Outcome> {
  const began = fixture.sim.now;
  const result = await connection.connect().then(
    () => connection.getType(),
    (error: { code: string }) => error.code,
  );
  return [result, codes(connection), fixture.sim.now - began];
}

const outcome = (connection: Connection): Promise<Outcome> => fixture.settle(attempt(connection));

/** A stranger at home that sends multicast DNS as the test wants. */
function stranger(): { host: SimulatedHost; say: (port: number) => void; heard: DnsMessage[] } {
  const host = member('stranger');
  const heard: DnsMessage[] = [];
  const socket = host.mdns.open(host.mdns.links()[0]!, { received: (message) => void heard.push(message), failed: () => {} });
  const name = `${ids.productId}-${ids.deviceId}`;
  const say = (port: number): void =>
    socket.send(dnsResponse({ answers: serviceRecords({ name, port, subtypes: [], txt: [], addresses: [host.addresses[0]!] }) }), null);
  return { host, say, heard };
}

describe('a stranger that announces the device at addresses elsewhere', () => {
  test('cannot make the client send there; the client connects to the device at home', async () => {
    const { host } = stranger();
    const victims = ['203.0.113.9', '8.8.8.8', '2001:db8:bad::1', '45.12.0.7'];
    const near = ['10.200.0.9', '100.64.7.7', 'fd12:3456::9'];
    const socket = host.mdns.open(host.mdns.links()[0]!, { received: () => {}, failed: () => {} });
    const addresses = [...victims, ...near];
    const sent: string[] = [];
    fixture.sim.onPacket = ({ from, destination }) => {
      if (from === phone.name) sent.push(destination.address);
      return undefined;
    };
    const name = `${ids.productId}-${ids.deviceId}`;
    const say = (): void =>
      socket.send(dnsResponse({ answers: serviceRecords({ name, port: SPOOFED_PORT, subtypes: [], txt: [], addresses }) }), null);
    const connecting = outcome(local({ DeviceFingerprint: PIN }));
    for (let i = 0; i < 20; i++) host.clock.schedule(100 * i, say);
    expect((await connecting)[0]).toBe('NO_CHANNELS');
    expect(sent.filter((address) => victims.includes(address))).toEqual([]);
    expect(near.filter((address) => sent.includes(address))).toEqual(near.slice(0, 2));
    const { device } = await atHome();
    expect((await outcome(local({ DeviceFingerprint: device.deviceFingerprint })))[0]).toBe('DIRECT');
  });
});

describe('without a base station', () => {
  test('a connection is DIRECT here and local at the device, and all operations work', async () => {
    const { device } = await atHome();
    device.addCoapResource('GET', '/who', ({ connection }) => ({ status: 205, payload: String(connection.isLocal) }));
    const connection = local({ DeviceFingerprint: device.deviceFingerprint });
    const events: string[] = [];
    recordEvents(connection, events);
    expect((await outcome(connection)).slice(0, 2)).toEqual(['DIRECT', ['OK', 'NONE', 'NONE']]);
    expect([connection.verified, connection.stationVerified, events]).toEqual(['pinned', null, ['open']]);
    expect(await fixture.coap(connection, 'GET', '/who')).toEqual({ status: 205, text: 'true' });
    expect([device.connection(1).isLocal, device.connection(1).type]).toEqual([true, 'DIRECT']);
  });

  test.each([
    ['asked for by name', {}, 6],
    ['by a scan, whose question waits for others', { ScanLocalConnect: true }, 300],
  ])('the device answers within two round trips of the question, %s', async (_, options, most) => {
    await atHome();
    const [type, , took] = await outcome(local(options));
    expect(type).toBe('DIRECT');
    expect(took).toBeLessThanOrEqual(most);
  });

  test('the right one of two devices at home is connected', async () => {
    const other = await atHome({ deviceId: 'de-2' });
    const meant = await atHome();
    for (const ScanLocalConnect of [false, true]) {
      const connection = local({ ScanLocalConnect });
      await fixture.settle(connection.connect());
      expect(connection.getDeviceFingerprint()).toBe(meant.device.deviceFingerprint);
    }
    expect(() => other.device.connection(1)).toThrow(expect.objectContaining({ code: 'INVALID_CONNECTION' }));
  });

  test('a device that is switched on during the search is found', async () => {
    const connecting = attempt(local({ MdnsTimeout: 10_000 }));
    await fixture.sim.run(3_000);
    await atHome();
    expect((await fixture.settle(connecting))[0]).toBe('DIRECT');
  });

  test('a silent announced device is NOT_FOUND, 2.5 s after it was found', async () => {
    const { say } = stranger();
    const connecting = attempt(local());
    await fixture.sim.run(1_900);
    say(SPOOFED_PORT);
    const [code, channels, took] = await fixture.settle(connecting);
    expect([code, channels]).toEqual(['NO_CHANNELS', ['NOT_FOUND', 'NONE', 'NONE']]);
    expect(took).toBeLessThan(4_500);
  });

  test('another address of the device is used when the first is silent', async () => {
    const { device } = await atHome();
    const { say } = stranger();
    const connection = local({ DeviceFingerprint: device.deviceFingerprint });
    const connecting = attempt(connection);
    for (let port = 0; port < 5; port++) say(SPOOFED_PORT + port);
    expect((await fixture.settle(connecting))[0]).toBe('DIRECT');
  });

  test('concurrent connects share the questions, and each succeeds', async () => {
    await atHome();
    const all = await fixture.settle(Promise.all(Array.from({ length: 20 }, () => attempt(local()))));
    expect(new Set(all.map(([type]) => type))).toEqual(new Set(['DIRECT']));
  });
});

describe('the search ends with', () => {
  const questions = (heard: readonly DnsMessage[]): number => heard.filter(({ response }) => !response).length;

  test.each<[string, (connection: Connection) => Promise<unknown>]>([
    ['close', (connection) => connection.close()],
    ['the end of the client', () => client.stop()],
  ])('%s: STOPPED at once, and no question follows', async (_, end) => {
    const { heard } = stranger();
    const connection = local({ MdnsTimeout: 60_000 });
    const connecting = attempt(connection);
    await fixture.sim.run(500);
    const ended = end(connection);
    const [code, , took] = await fixture.settle(connecting);
    await fixture.settle(ended);
    expect([code, took]).toEqual(['STOPPED', 500]);
    const asked = questions(heard);
    await fixture.sim.run(60_000);
    expect([asked > 0, questions(heard)]).toEqual([true, asked]);
  });

  test('a connection', async () => {
    await atHome();
    const { heard } = stranger();
    await outcome(local());
    const asked = questions(heard);
    await fixture.sim.run(60_000);
    expect(questions(heard)).toBe(asked);
  });

  test('ConnectTimeout: TIMEOUT, with the channel in progress', async () => {
    const connection = local({ MdnsTimeout: 60_000, ConnectTimeout: 700 });
    expect(await outcome(connection)).toEqual(['TIMEOUT', ['OPERATION_IN_PROGRESS', 'NONE', 'NONE'], 700]);
  });

  test('ConnectTimeout: the message names the channel in progress', async () => {
    const message = 'no channel to the device within 0.7 s; still being tried: the local network';
    await expect(fixture.settle(local({ MdnsTimeout: 60_000, ConnectTimeout: 700 }).connect())).rejects.toMatchObject({ message });
  });
});

test.each<[string, ConnectionOptions, string[], number]>([
  ['both on', { Local: true }, ['NOT_FOUND', 'FORBIDDEN', 'NONE'], 2_000],
  ['Local off', {}, ['NONE', 'FORBIDDEN', 'NONE'], 0],
  ['Remote off', { Local: true, Remote: false }, ['NOT_FOUND', 'NONE', 'NONE'], 2_000],
  ['both off', { Remote: false }, ['NONE', 'NONE', 'NONE'], 0],
  ['ids that no device can have', { Local: true, Remote: false, ProductId: 'pr.1' }, ['NOT_FOUND', 'NONE', 'NONE'], 0],
])('NO_CHANNELS where the base station refuses and nothing is announced: %s', async (_, options, expected, time) => {
  const { error, channels, took } = await asked({ ...ADMITTED, ...options });
  expect([error.code, channels, took]).toEqual(['NO_CHANNELS', expected, time]);
});

test('without multicast DNS nothing is searched for', async () => {
  const { clock, crypto, network, log } = phone;
  client = SvcClient.create({ environment: { clock, crypto, network, log, createCore: (options) => phone.createCore(options) } });
  expect(await outcome(local())).toEqual(['NO_CHANNELS', ['NONE', 'NONE', 'NONE'], 0]);
});

describe('beside a base station', () => {
  beforeEach(async () => {
    await fixture.station();
  });

  test('the local network is faster, and the device sees one connection', { tags: ['slow'] }, async () => {
    const { device } = await atHome();
    const connection = both();
    const [type, channels] = await outcome(connection);
    expect([type, channels]).toEqual(['DIRECT', ['OK', 'OPERATION_IN_PROGRESS', 'NONE']]);
    await fixture.sim.run(20_000);
    expect(device.connection(1).isLocal).toBe(true);
    expect(() => device.connection(2)).toThrow(expect.objectContaining({ code: 'INVALID_CONNECTION' }));
  });

  test('a device elsewhere is relayed, without delay', { tags: ['slow'] }, async () => {
    await fixture.attached();
    const [, , alone] = await outcome(fixture.connection({ Local: false }));
    const [type, channels, took] = await outcome(both());
    expect([type, channels]).toEqual(['RELAY', ['OPERATION_IN_PROGRESS', 'OK', 'NONE']]);
    expect(took).toBe(alone);
  });

  test('the local network works while the base station is off or unreachable', { tags: ['slow'] }, async () => {
    await atHome();
    await fixture.settle(fixture.stationUnderTest.basestation.close());
    expect((await outcome(both()))[0]).toBe('DIRECT');
    expect((await outcome(both({ ServerUrl: 'https://nowhere.invalid' })))[0]).toBe('DIRECT');
  });

  test('each channel is in progress while it connects', async () => {
    await fixture.attached();
    const connection = both();
    expect(codes(connection)).toEqual(['NONE', 'NONE', 'NONE']);
    const connecting = attempt(connection);
    await fixture.sim.run(5);
    expect(codes(connection)).toEqual(['OPERATION_IN_PROGRESS', 'OPERATION_IN_PROGRESS', 'NONE']);
    await fixture.settle(connecting);
  });

  test('NO_CHANNELS of a device that neither knows', async () => {
    await atHome();
    const [code, channels, took] = await outcome(both({ DeviceId: 'de-x' }));
    expect([code, channels]).toEqual(['NO_CHANNELS', ['NOT_FOUND', 'UNKNOWN_DEVICE_ID', 'NONE']]);
    expect(took).toBeLessThanOrEqual(2_000);
  });

  test('NO_CHANNELS of a device that is offline, within 5 s', { tags: ['slow'] }, async () => {
    const { device } = await fixture.attached();
    await fixture.settle(device.close());
    const [, channels, took] = await outcome(both());
    expect(channels).toEqual(['NOT_FOUND', 'NOT_ATTACHED', 'NONE']);
    expect(took).toBeLessThanOrEqual(5_000);
  });

  test('NO_CHANNELS of all three channels at once', { tags: ['slow'] }, async () => {
    const connection = both({ DeviceId: 'de-x', DtlsHelloTimeout: 1_000 });
    connection.enableDirectCandidates();
    connection.addDirectCandidate('station', 1);
    connection.endOfDirectCandidates();
    const [code, channels] = await outcome(connection);
    expect([code, channels]).toEqual(['NO_CHANNELS', ['NOT_FOUND', 'UNKNOWN_DEVICE_ID', 'NOT_FOUND']]);
  });

  test('direct candidates without ids: the client does not search', async () => {
    const { heard } = stranger();
    const connection = client.createConnection();
    connection.updateOptions({ PrivateKey: client.createPrivateKey(), DtlsHelloTimeout: 1_000 });
    connection.enableDirectCandidates();
    connection.addDirectCandidate('station', 1);
    connection.endOfDirectCandidates();
    expect((await outcome(connection)).slice(0, 2)).toEqual(['NO_CHANNELS', ['NONE', 'NONE', 'NOT_FOUND']]);
    expect(heard).toEqual([]);
  });
});

describe('a stranger at home', () => {
  let relayed: DeviceUnderTest;
  beforeEach(async () => {
    await fixture.station();
    relayed = await fixture.attached();
  });

  /** A stranger's device with the ids of our own. */
  const impostor = (): Promise<DeviceUnderTest> => atHome({ basestationAttach: false, registered: false });

  test('that answers with another key: the base station is used, and the stranger learns no key of the client', {
    tags: ['slow'],
  }, async () => {
    const { device } = await impostor();
    const seen: string[] = [];
    device.onConnectionEvent((_, event) => seen.push(event));
    const connection = both({ DeviceFingerprint: relayed.device.deviceFingerprint });
    const [type, channels] = await outcome(connection);
    expect([type, channels]).toEqual(['RELAY', ['OPERATION_IN_PROGRESS', 'OK', 'NONE']]);
    expect(connection.getDeviceFingerprint()).toBe(relayed.device.deviceFingerprint);
    await fixture.sim.run(20_000);
    expect(seen).toEqual([]);
  });

  test('that answers with another key when nothing else works: FINGERPRINT_MISMATCH', async () => {
    await impostor();
    const pinned = both({ DeviceFingerprint: PIN, ServerUrl: 'https://nowhere.invalid' });
    expect((await outcome(pinned)).slice(0, 2)).toEqual(['FINGERPRINT_MISMATCH', ['FINGERPRINT_MISMATCH', 'DNS', 'NONE']]);
    expect(pinned.channelFailures).toEqual({
      local: expect.objectContaining({ code: 'FINGERPRINT_MISMATCH' }),
      remote: expect.objectContaining({ code: 'DNS' }),
    });
  });

  test.each<[string, ConnectionOptions, string]>([
    ['a token that the base station rejects', { ServerConnectToken: 'wrong' }, 'TOKEN_REJECTED'],
    ['a device that is not attached', {}, 'NOT_ATTACHED'],
  ])('that answers with another key hides no answer of the base station: %s', async (_, options, code) => {
    await fixture.settle(relayed.device.close());
    await impostor();
    const pinned = both({ DeviceFingerprint: PIN, ...options });
    expect((await outcome(pinned)).slice(0, 2)).toEqual(['NO_CHANNELS', ['FINGERPRINT_MISMATCH', code, 'NONE']]);
  });

  test('that answers with another key hides no answer of the device at home', async () => {
    const answers = ['FINGERPRINT_MISMATCH', 'DEVICE_INTERNAL_ERROR', 'TIMEOUT'] as const;
    const failed = (code: ErrorCode) => ({ result: Promise.reject(new RemoteError(code, 'failed')), cancel: () => {} });
    const host = { environment: phone, dials: { start: ({ port }: { port: number }) => failed(answers[port]!) } };
    const endpoints = answers.map((_, port) => ({ address: `${HOME}.9`, port }));
    const find = (_: string, take: (change: unknown) => void) => {
      take({ action: 'ADD', service: { endpoints } });
      return () => {};
    };
    const browser = { environment: phone, find, browse: () => () => {} };
    const target = { signal: new AbortController().signal };
    const search = { ...ids, timeout: 100, scanAll: false };
    const connecting = connectLocal(host as unknown as Host, browser as unknown as MdnsBrowser, search, target as never);
    expect(await fixture.code(connecting)).toBe('DEVICE_INTERNAL_ERROR');
  });

  test('that answers first: the device at home is connected', async () => {
    await impostor();
    const { device } = await impostor();
    const connection = local({ DeviceFingerprint: device.deviceFingerprint });
    expect((await outcome(connection))[0]).toBe('DIRECT');
    expect(connection.getDeviceFingerprint()).toBe(device.deviceFingerprint);
  });

  test('that announces the device at a thousand ports: the relayed connect takes no longer, and 32 ports get four packets each', {
    tags: ['slow'],
  }, async () => {
    const [, , alone] = await outcome(fixture.connection({ Local: false }));
    const { host, say } = stranger();
    const packets = new Map<number, number>();
    fixture.sim.onTrace = ({ to, destination: { port } }, fate) => {
      if (to === host.name && fate === 'unreachable') packets.set(port, (packets.get(port) ?? 0) + 1);
    };
    const flood = (connection: Connection): Promise<Outcome> => {
      for (let index = 0; index < 1_000; index++) host.clock.schedule(index * 0.05, () => say(SPOOFED_PORT + index));
      return outcome(connection);
    };
    const [type, , took] = await flood(both());
    expect([type, took]).toEqual(['RELAY', alone]);
    await fixture.sim.run(60_000);
    packets.clear();
    expect((await flood(local()))[0]).toBe('NO_CHANNELS');
    expect([packets.size, new Set(packets.values())]).toEqual([32, new Set([4])]);
  });
});

test('with Remote: false the base station gets no request, even if it is configured', { tags: ['slow'] }, async () => {
  await fixture.station();
  await atHome();
  const before = fixture.stationUnderTest.basestation.stats();
  const connection = client.createConnection();
  const { productId: ProductId, deviceId: DeviceId } = ids;
  connection.updateOptions({
    PrivateKey: client.createPrivateKey(),
    ProductId,
    DeviceId,
    ServerUrl: SERVER_URL,
    ServerConnectToken: SCT,
    Remote: false,
  });
  expect((await outcome(connection))[0]).toBe('DIRECT');
  expect(fixture.stationUnderTest.basestation.stats().connections).toBe(before.connections);
});
