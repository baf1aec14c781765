/** Client directly to the device, and both channels at once, in virtual time. */
import { beforeEach, describe, expect, test } from 'vitest';
import { connectDirect, DirectCandidates } from '../../../client/connect/direct.ts';
import { connectChannels } from '../../../client/connect/race.ts';
import { Connection as ClientConnection, type ConnectionContext } from '../../../client/connection.ts';
import type { Connection, ConnectionOptions, ConnectionType } from '../../../client/node.ts';
import { effectiveOptions } from '../../../client/options.ts';
import { type Clock, type Environment, type Network, silentLog } from '../../../platform/environment.ts';
import { nodeEnvironment } from '../../../platform/node/index.ts';
import { MdnsBrowser } from '../../../runtime/discovery/index.ts';
import type { Host } from '../../../runtime/host/index.ts';
import type { Session } from '../../../runtime/session/index.ts';
import type { StationConnector } from '../../../runtime/station/index.ts';
import type { DeviceUnderTest } from '../../support/fixture/devices-and-clients.ts';
import { ids } from '../../support/fixture/identifiers.ts';
import { ProductFixture } from '../../support/fixture/products.ts';
import { noPaths } from '../../support/no-paths.ts';
import { recordEvents } from '../../support/recorded-events.ts';

let fixture: ProductFixture;
beforeEach(async () => {
  fixture = await ProductFixture.withStation();
});

/** A device that is only reachable directly. */
async function direct(): Promise<DeviceUnderTest> {
  const under = await fixture.device({ basestationAttach: false });
  await fixture.start(under);
  return under;
}

function connectionTo(addresses: readonly [string, number][], options: ConnectionOptions = {}): Connection {
  const client = fixture.client();
  const connection = client.createConnection();
  connection.updateOptions({ PrivateKey: client.createPrivateKey(), ...options });
  connection.enableDirectCandidates();
  for (const [host, port] of addresses) connection.addDirectCandidate(host, port);
  return connection;
}

describe('direct candidates', () => {
  test('lead directly to the device, with its ids or without', async () => {
    const { device, host } = await direct();
    device.addCoapResource('GET', '/hello', () => ({ status: 205, payload: 'hello' }));
    for (const options of [{}, { ProductId: ids.productId, DeviceId: ids.deviceId, DeviceFingerprint: device.deviceFingerprint }]) {
      const connection = connectionTo([[host, device.localPort]], options);
      connection.endOfDirectCandidates();
      await fixture.settle(connection.connect());
      const type: ConnectionType = connection.getType();
      expect(type).toBe('DIRECT');
      expect(connection.deviceInfo).toMatchObject({ ProductId: ids.productId, DeviceId: ids.deviceId });
      expect((await fixture.coap(connection, 'GET', '/hello')).text).toBe('hello');
    }
  });

  test('fail without the ids of the device at any port but the local one', { tags: ['slow'] }, async () => {
    const { device, host } = await direct();
    const stranger = connectionTo([[host, device.p2pPort]]);
    stranger.endOfDirectCandidates();
    await expect(fixture.settle(stranger.connect())).rejects.toMatchObject({ directCandidatesChannelErrorCode: 'NOT_FOUND' });
    const friend = connectionTo([[host, device.p2pPort]], { ProductId: ids.productId, DeviceId: ids.deviceId });
    friend.endOfDirectCandidates();
    await fixture.settle(friend.connect());
    await fixture.sim.run(1_000);
    expect(device.connection(1).isLocal).toBe(false);
  });

  test('connect if one of several works, and may be added after connect', { tags: ['slow'] }, async () => {
    const { device, host } = await direct();
    const connection = connectionTo([[host, 1]]);
    const connecting = connection.connect();
    await fixture.sim.run(3_000);
    connection.addDirectCandidate('nowhere.invalid', 5592);
    connection.addDirectCandidate(host, device.localPort);
    connection.endOfDirectCandidates();
    await fixture.settle(connecting);
    expect(connection.getType()).toBe('DIRECT');
  });

  test('cause CHANNEL_CHANGED when the device answers from another address', async () => {
    const home = fixture.sim.host('home');
    const under = await fixture.device({ environment: home, basestationAttach: false });
    await fixture.start(under);
    let answer = () => {};
    under.device.addCoapResource('GET', '/slow', () => new Promise((done) => (answer = () => done({ status: 205 }))));
    const connection = connectionTo([['home', under.device.localPort]]);
    connection.endOfDirectCandidates();
    const events: string[] = [];
    recordEvents(connection, events);
    await fixture.settle(connection.connect());
    const done = connection.get('/slow');
    await fixture.sim.run(1_000);
    fixture.sim.rebind(home, 'port');
    answer();
    expect(await fixture.settle(done)).toMatchObject({ status: 205 });
    await fixture.sim.run(5_000);
    expect(events).toEqual(['open', 'path']);
  });

  test('fail only when no more can be added', async () => {
    const { host } = await direct();
    const connection = connectionTo([[host, 1]], { DtlsHelloTimeout: 2_000 });
    let failed = false;
    const connecting = connection.connect().catch((error: unknown) => {
      failed = true;
      return error;
    });
    await fixture.sim.run(10_000);
    expect(failed).toBe(false);
    connection.endOfDirectCandidates();
    expect(await fixture.settle(connecting)).toMatchObject({
      code: 'NO_CHANNELS',
      localChannelErrorCode: 'NONE',
      remoteChannelErrorCode: 'NONE',
      directCandidatesChannelErrorCode: 'NOT_FOUND',
    });
  });

  test('without their end time the whole connect out', async () => {
    const connection = connectionTo([], { ConnectTimeout: 7_000 });
    const began = fixture.sim.now;
    expect(await fixture.code(connection.connect())).toBe('TIMEOUT');
    expect(fixture.sim.now - began).toBeGreaterThanOrEqual(7_000);
  });

  test('fail with DNS for a host that does not resolve', async () => {
    const connection = connectionTo([['nowhere.invalid', 5592]]);
    connection.endOfDirectCandidates();
    await expect(fixture.settle(connection.connect())).rejects.toMatchObject({ directCandidatesChannelErrorCode: 'DNS' });
  });

  test('do not accept another device at the address', { tags: ['slow'] }, async () => {
    const { device, host } = await direct();
    const other = connectionTo([[host, device.localPort]], { ProductId: ids.productId, DeviceId: 'de-other', DtlsHelloTimeout: 2_000 });
    other.endOfDirectCandidates();
    await expect(fixture.settle(other.connect())).rejects.toMatchObject({ directCandidatesChannelErrorCode: 'NOT_FOUND' });
    const pinned = connectionTo([[host, device.localPort]], { DeviceFingerprint: 'ab'.repeat(32) });
    pinned.endOfDirectCandidates();
    expect(await fixture.code(pinned.connect())).toBe('FINGERPRINT_MISMATCH');
  });
});

describe('with both channels', () => {
  async function both(address: [string, number] | null, options: ConnectionOptions = {}): Promise<Connection> {
    const connection = fixture.connection(options);
    connection.enableDirectCandidates();
    if (address !== null) connection.addDirectCandidate(...address);
    connection.endOfDirectCandidates();
    return connection;
  }

  test('the faster one wins', { tags: ['slow'] }, async () => {
    const { device, host } = await fixture.attached();
    const connection = await both([host, device.localPort]);
    await fixture.settle(connection.connect());
    expect(connection.getType()).toBe('DIRECT');
    await fixture.sim.run(5_000);
    expect(device.connection(1).type).toBe('DIRECT');
    expect(() => device.connection(2)).toThrow(expect.objectContaining({ code: 'INVALID_CONNECTION' }));
  });

  test('the base station connects when the address is useless', { tags: ['slow'] }, async () => {
    const { host } = await fixture.attached();
    const connection = await both([host, 1]);
    await fixture.settle(connection.connect());
    expect(connection.getType()).toBe('RELAY');
  });

  test('the error has both codes when both fail', { tags: ['slow'] }, async () => {
    const { device, host } = await fixture.attached();
    await fixture.settle(device.close());
    const connection = await both([host, 1], { DtlsHelloTimeout: 2_000 });
    await expect(fixture.settle(connection.connect())).rejects.toMatchObject({
      remoteChannelErrorCode: 'NOT_ATTACHED',
      directCandidatesChannelErrorCode: 'NOT_FOUND',
    });
  });

  test('each connection keeps the result of each channel', { tags: ['slow'] }, async () => {
    const { device, host } = await fixture.attached();
    const codes = (connection: Connection) => [
      connection.getLocalChannelErrorCode(),
      connection.getRemoteChannelErrorCode(),
      connection.getDirectCandidatesChannelErrorCode(),
    ];
    const relayed = fixture.connection();
    expect(codes(relayed)).toEqual(['NONE', 'NONE', 'NONE']);
    await fixture.settle(relayed.connect());
    const straight = await both([host, device.localPort], { Remote: false });
    await fixture.settle(straight.connect());
    await fixture.settle(device.close());
    const failed = await both([host, 1], { DtlsHelloTimeout: 2_000 });
    await fixture.code(failed.connect());
    expect([relayed, straight, failed].map(codes)).toEqual([
      ['OPERATION_IN_PROGRESS', 'OK', 'NONE'],
      ['OPERATION_IN_PROGRESS', 'NONE', 'OK'],
      ['NOT_FOUND', 'NOT_ATTACHED', 'NOT_FOUND'],
    ]);
  });

  test('a wrong key at the address does not stop the base station', async () => {
    const { device } = await fixture.attached();
    const impostor = await fixture.device({ basestationAttach: false, registered: false });
    await fixture.start(impostor);
    const connection = await both([impostor.host, impostor.device.localPort], { DeviceFingerprint: device.deviceFingerprint });
    await fixture.settle(connection.connect());
    expect(connection.getType()).toBe('RELAY');
    expect(connection.getDeviceFingerprint()).toBe(device.deviceFingerprint);
  });
});

describe('DtlsHelloTimeout', () => {
  test.each([[2_000], [20_000]])('limits to %d ms how long an address may be silent', async (timeout) => {
    const { host } = await direct();
    const connection = connectionTo([[host, 1]], { DtlsHelloTimeout: timeout });
    connection.endOfDirectCandidates();
    const began = fixture.sim.now;
    await expect(fixture.settle(connection.connect())).rejects.toMatchObject({ directCandidatesChannelErrorCode: 'NOT_FOUND' });
    expect(fixture.sim.now - began).toBeGreaterThanOrEqual(timeout);
    expect(fixture.sim.now - began).toBeLessThan(timeout + 200);
  });
});

describe('unused sessions', () => {
  /** A session that counts how often it was closed. */
  function countedSession() {
    const counted = { closed: 0 };
    const session = { close: async () => void counted.closed++ } as unknown as Session;
    return { counted, session };
  }

  /**
   * A client's parts without a network: the direct channel gives `dialled`, the base station's gives `relayed`, both at
   * the same moment.
   */
  function contextOf(dialled: Session, relayed: Session, onEnd = () => {}): ConnectionContext {
    const { clock, crypto } = nodeEnvironment();
    // The end of the connect cancels its timeout.
    const schedule: Clock['schedule'] = (delay, run) => {
      const cancel = clock.schedule(delay, run);
      return () => {
        cancel();
        if (delay >= 120_000) onEnd();
      };
    };
    const network = { resolve: async () => ['10.0.0.1'] } as unknown as Network;
    const environment = { clock: { ...clock, schedule }, crypto, log: silentLog, network } as unknown as Environment;
    const answer = Promise.resolve();
    const start = () => ({ result: answer.then(() => dialled), cancel: () => {} });
    return {
      environment,
      listenTunnel: undefined,
      hasUdpPorts: false,
      browser: new MdnsBrowser(environment),
      host: async () => ({ environment, dials: { start } }) as unknown as Host,
      connector: async () => ({ use: async () => relayed }) as unknown as StationConnector,
      importKey: () => crypto.generateKey(),
      fingerprintOf: () => '',
      directPaths: noPaths,
      onConnecting: () => {},
      onClosed: () => {},
    };
  }

  test('are closed when both channels succeed', async () => {
    const [dialled, relayed] = [countedSession(), countedSession()];
    const candidates = new DirectCandidates();
    candidates.add('10.0.0.1', 1);
    const context = contextOf(dialled.session, relayed.session);
    const options = effectiveOptions({
      Local: false,
      ProductId: 'p',
      DeviceId: 'd',
      ServerUrl: 'https://station',
      ServerConnectToken: 'token',
    });
    const session = await connectChannels(
      { ...context, identity: context.importKey(''), candidates, onChannels: () => {}, onWaiting: () => {} },
      { ...options, ServerFingerprint: 'ab'.repeat(32) },
      new AbortController().signal,
    );
    await new Promise((resolve) => setImmediate(resolve));
    const [winner, other] = session === dialled.session ? [dialled, relayed] : [relayed, dialled];
    expect([winner.counted.closed, other.counted.closed]).toEqual([0, 1]);
  });

  test('are closed when the connection closes as the session opens', async () => {
    const { counted, session } = countedSession();
    const connection: ClientConnection = new ClientConnection(contextOf(session, session, () => void connection.close()));
    connection.updateOptions({ PrivateKey: 'key', Remote: false });
    connection.enableDirectCandidates();
    connection.addDirectCandidate('10.0.0.1', 1);
    await expect(connection.connect()).rejects.toMatchObject({ code: 'STOPPED' });
    expect(counted.closed).toBe(1);
  });
});

describe('a stopped connect', () => {
  /** A connect to one candidate, stopped while its name is resolved or when its session opens. */
  function stopped({ whileResolving }: { whileResolving: boolean }) {
    const stop = new AbortController();
    const candidates = new DirectCandidates();
    candidates.add('10.0.0.1', 1);
    const counts = { dials: 0, closed: 0 };
    const session = { close: async () => void counts.closed++ } as unknown as Session;
    const start: Host['dials']['start'] = () => {
      counts.dials++;
      stop.abort();
      return { result: Promise.resolve(session), cancel: () => {} };
    };
    const host = { environment: { clock: nodeEnvironment().clock, log: silentLog }, dials: { start } } as unknown as Host;
    const resolve = async () => {
      if (whileResolving) stop.abort();
      return ['10.0.0.1'];
    };
    const network = { resolve } as unknown as Network;
    return { counts, connecting: connectDirect(host, network, candidates, { name: 'device', signal: stop.signal }) };
  }

  test('closes a session that opens at that moment', async () => {
    const { counts, connecting } = stopped({ whileResolving: false });
    await expect(connecting).rejects.toMatchObject({ code: 'STOPPED' });
    await new Promise((resolve) => setImmediate(resolve));
    expect(counts).toEqual({ dials: 1, closed: 1 });
  });

  test('dials no address of a name that is being resolved', async () => {
    const { counts, connecting } = stopped({ whileResolving: true });
    await expect(connecting).rejects.toMatchObject({ code: 'STOPPED' });
    await new Promise((resolve) => setImmediate(resolve));
    expect(counts).toEqual({ dials: 0, closed: 0 });
  });
});
