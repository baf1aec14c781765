/** The options that are times, in virtual time: each case fails when its option is ignored. */
import { beforeEach, describe, expect, test } from 'vitest';
import type { Connection, ConnectionOptions } from '../../client/node.ts';
import { Router } from '../../protocol/coap/index.ts';
import { DevicePath, encodeTokens, StationPath } from '../../protocol/control/index.ts';
import type { Session } from '../../runtime/session/index.ts';
import { ids, SCT } from '../support/fixture/identifiers.ts';
import { ProductFixture } from '../support/fixture/products.ts';
import { recordEvents } from '../support/recorded-events.ts';
import { ADMITTED } from './stand-in.ts';

let fixture: ProductFixture;
beforeEach(() => {
  fixture = new ProductFixture();
});

/** Returns the virtual time in ms until the connect fails, and its error. */
async function failure(connection: Connection): Promise<{ after: number; error: unknown }> {
  const began = fixture.sim.now;
  const error = await fixture.settle(connection.connect().catch((reason: unknown) => reason));
  return { after: fixture.sim.now - began, error };
}

describe('DtlsHelloTimeout', () => {
  const cases: [string, ConnectionOptions, number][] = [
    ['by default', {}, 10_000],
    ['when shorter', { DtlsHelloTimeout: 1_500 }, 1_500],
    ['when longer', { DtlsHelloTimeout: 25_000 }, 25_000],
  ];

  test.each(cases)('ends the handshake with a silent address, %s', async (_, options, expected) => {
    fixture.host('silent', { machine: 'silent' });
    const { after, error } = await failure(fixture.directConnection('silent', 1, options));
    expect(error).toMatchObject({ code: 'NO_CHANNELS', directCandidatesChannelErrorCode: 'NOT_FOUND' });
    expect(after).toBe(expected);
  });

  test.each(cases)('ends the handshake with a silent base station, %s', async (_, options, expected) => {
    fixture.host('silent', { machine: 'silent' });
    const client = fixture.client();
    const silent = { PrivateKey: client.createPrivateKey(), ...ADMITTED, ServerUrl: 'https://silent:4433' };
    const { after, error } = await failure(client.createConnection({ ...silent, ...options }));
    expect(error).toMatchObject({ code: 'NO_CHANNELS', remoteChannelErrorCode: 'CONNECTION_REFUSED' });
    expect(after).toBe(expected);
  });

  test.each([
    ['a direct', { directCandidatesChannelErrorCode: 'NOT_FOUND' }, 1_500],
    // The handshake with the base station comes before.
    ['a relayed', { remoteChannelErrorCode: 'TIMEOUT' }, 1_520],
  ])('ends the wait for the acknowledgement of a crowded device that falls silent, over %s path', async (way, expected, time) => {
    const isRelayed = way === 'a relayed';
    if (isRelayed) await fixture.station();
    const under = await fixture.device();
    const { device, host } = under;
    device.limitConnections(0);
    await fixture.start(under);
    if (isRelayed) await fixture.until(under, 'ATTACHED');
    // The Respond arrives: as it is, or in an answer over the channel.
    const isLost = (data: Uint8Array): boolean => (isRelayed ? data[0] === 0x88 : data[0] !== 0x82);
    fixture.sim.onPacket = ({ from, data }) => (from === host && isLost(data) ? 'drop' : undefined);
    const options = { DtlsHelloTimeout: 1_500, Local: false };
    const connection = isRelayed ? fixture.connection(options) : fixture.directConnection(host, device.localPort, options);
    const events: string[] = [];
    recordEvents(connection, events);
    const { after, error } = await failure(connection);
    expect(error).toMatchObject({ code: 'NO_CHANNELS', ...expected });
    expect(after).toBe(time);
    fixture.sim.onPacket = undefined;
    await fixture.sim.run(10_000);
    expect(events).toEqual([]);
  });

  test('ends the wait for a device that does not answer the base station, which waits for 4 s', { tags: ['slow'] }, async () => {
    const station = await fixture.station();
    const device = await fixture.raw.client();
    await station.register(ids, device.host.fingerprint);
    await device.open(new Router<Session>().on('POST', StationPath.P2P_CONNECT, () => new Promise(() => {})));
    await device.attach();
    await device.request('PUT', DevicePath.SCT, encodeTokens([SCT]));
    const patient = await failure(fixture.connection());
    expect(patient.error).toMatchObject({ remoteChannelErrorCode: 'NOT_ATTACHED' });
    expect(patient.after).toBeGreaterThan(4_000);
    const impatient = await failure(fixture.connection({ Local: false, DtlsHelloTimeout: 1_500 }));
    expect(impatient.error).toMatchObject({ remoteChannelErrorCode: 'TIMEOUT' });
    expect(impatient.after).toBeGreaterThanOrEqual(1_500);
    expect(impatient.after).toBeLessThan(1_600);
  });
});

test.each([
  ['by default', {}, 120_000],
  ['when shorter', { ConnectTimeout: 3_000 }, 3_000],
  ['when longer', { ConnectTimeout: 300_000 }, 300_000],
])('ConnectTimeout ends a connect whose candidates never end, %s', async (_, options: ConnectionOptions, expected) => {
  const client = fixture.client();
  const connection = client.createConnection();
  connection.updateOptions({ PrivateKey: client.createPrivateKey(), ...options });
  connection.enableDirectCandidates();
  const { after, error } = await failure(connection);
  expect(error).toMatchObject({ code: 'TIMEOUT' });
  expect(after).toBe(expected);
});

describe('keep-alive', () => {
  /** Time in ms within which all packets of a connect are acknowledged. */
  const SETTLING = 200;

  /** Cuts the link. @returns ms from the connect until the connection has ended */
  async function lost(connection: Connection, one: string, other: string): Promise<number> {
    const began = fixture.sim.now;
    await fixture.sim.run(SETTLING);
    fixture.sim.link(one, other, { loss: 1 });
    await fixture.sim.run(() => connection.closeReason !== null);
    expect(connection.closeReason?.code).toBe('TIMEOUT');
    return fixture.sim.now - began;
  }

  const short = { KeepAliveInterval: 1_000, KeepAliveRetryInterval: 500, KeepAliveMaxRetries: 3 };
  // KeepAliveInterval, then KeepAliveMaxRetries times KeepAliveRetryInterval.
  const cases: [string, ConnectionOptions, number][] = [
    ['by default', {}, 55_000],
    ['with all three', short, 2_500],
    ['with the profile live', { KeepAliveProfile: 'live' }, 15_000],
    ['with another KeepAliveInterval', { ...short, KeepAliveInterval: 7_000 }, 8_500],
    ['with another KeepAliveRetryInterval', { ...short, KeepAliveRetryInterval: 2_000 }, 7_000],
    ['with another KeepAliveMaxRetries', { ...short, KeepAliveMaxRetries: 10 }, 6_000],
    ['with KeepAliveInterval alone', { KeepAliveInterval: 5_000 }, 35_000],
    ['with KeepAliveRetryInterval alone', { KeepAliveRetryInterval: 100 }, 26_500],
    ['with KeepAliveMaxRetries alone', { KeepAliveMaxRetries: 1 }, 27_000],
  ];

  test.each(cases)('detects the loss of a direct connection, %s', async (_, options, expected) => {
    const under = await fixture.device();
    await fixture.start(under);
    const client = fixture.host('phone', { machine: 'phone' });
    const connection = fixture.directConnection(under.host, under.device.localPort, options, fixture.client(client));
    await fixture.settle(connection.connect());
    expect(await lost(connection, under.host, 'phone')).toBe(expected);
  });

  test.each<[string, ConnectionOptions, number]>([
    // A base station may bring a silent device back: by default the client waits another minute.
    ['by default', {}, 55_000 + 60_000],
    ['with all three', short, 2_500],
    ['with the profile live', { KeepAliveProfile: 'live' }, 15_000],
  ])('detects the loss of a relayed connection, %s', async (_, options, expected) => {
    await fixture.station();
    const under = await fixture.attached();
    const connection = await fixture.connected(options);
    expect(await lost(connection, under.host, 'station')).toBe(expected);
  });
});
