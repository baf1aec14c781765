/** Client to device straight, and both ways at once, in virtual time. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { connectDirect, DirectCandidates } from '../../../client/connect/direct.ts';
import type { Connection, ConnectionEvent, ConnectionOptions, ConnectionType } from '../../../client/node.ts';
import { type Network, silentLog } from '../../../transport/environment.ts';
import type { Host } from '../../../transport/host/index.ts';
import { nodeEnvironment } from '../../../transport/node/index.ts';
import type { Session } from '../../../transport/session/index.ts';
import type { DeviceUnderTest } from '../scene.ts';
import { ids, Scene } from '../scene.ts';

let scene: Scene;
beforeEach(async () => {
  scene = await Scene.make();
});
afterEach(() => scene.close());

/** A device that is only reachable straight. */
async function direct(): Promise<DeviceUnderTest> {
  const under = await scene.device({ basestationAttach: false });
  await scene.start(under);
  return under;
}

function connectionTo(addresses: readonly [string, number][], options: ConnectionOptions = {}): Connection {
  const client = scene.client();
  const connection = client.createConnection();
  connection.updateOptions({ PrivateKey: client.createPrivateKey(), ...options });
  connection.enableDirectCandidates();
  for (const [host, port] of addresses) connection.addDirectCandidate(host, port);
  return connection;
}

describe('direct candidates', () => {
  test('lead straight to the device, with its ids or without', async () => {
    const { device, host } = await direct();
    device.addCoapResource('GET', '/hello', () => ({ status: 205, payload: 'hello' }));
    for (const options of [{}, { ProductId: ids.productId, DeviceId: ids.deviceId, DeviceFingerprint: device.deviceFingerprint }]) {
      const connection = connectionTo([[host, device.localPort]], options);
      connection.endOfDirectCandidates();
      await scene.settle(connection.connect());
      const type: ConnectionType = connection.getType();
      expect(type).toBe('DIRECT');
      expect(connection.deviceInfo).toMatchObject({ ProductId: ids.productId, DeviceId: ids.deviceId });
      expect((await scene.coap(connection, 'GET', '/hello')).text).toBe('hello');
    }
  });

  test('only the local port answers one who does not know the ids', async () => {
    const { device, host } = await direct();
    const stranger = connectionTo([[host, device.p2pPort]]);
    stranger.endOfDirectCandidates();
    await expect(scene.settle(stranger.connect())).rejects.toMatchObject({ directCandidatesChannelErrorCode: 'NOT_FOUND' });
    const friend = connectionTo([[host, device.p2pPort]], { ProductId: ids.productId, DeviceId: ids.deviceId });
    friend.endOfDirectCandidates();
    await scene.settle(friend.connect());
    await scene.world.sim.run(1_000);
    expect(device.connection(1).isLocal).toBe(false);
  });

  test('one of several is enough, and they may come after connect', async () => {
    const { device, host } = await direct();
    const connection = connectionTo([[host, 1]]);
    const connecting = connection.connect();
    await scene.world.sim.run(3_000);
    connection.addDirectCandidate('nowhere.invalid', 5592);
    connection.addDirectCandidate(host, device.localPort);
    connection.endOfDirectCandidates();
    await scene.settle(connecting);
    expect(connection.getType()).toBe('DIRECT');
  });

  test('CHANNEL_CHANGED when the device answers from another address', async () => {
    const home = scene.world.sim.host('home');
    const under = await scene.device({ environment: home, basestationAttach: false });
    await scene.start(under);
    let answer = () => {};
    under.device.addCoapResource('GET', '/slow', () => new Promise((done) => (answer = () => done({ status: 205 }))));
    const connection = connectionTo([['home', under.device.localPort]]);
    connection.endOfDirectCandidates();
    const events: ConnectionEvent[] = [];
    connection.addConnectionEventsListener({ onEvent: (event) => events.push(event) });
    await scene.settle(connection.connect());
    const coap = connection.createCoap('GET', '/slow');
    const done = coap.execute();
    await scene.world.sim.run(1_000);
    scene.world.sim.rebind(home, 'port');
    answer();
    await scene.settle(done);
    expect(coap.getResponseStatusCode()).toBe(205);
    await scene.world.sim.run(5_000);
    expect(events).toEqual(['CONNECTED', 'CHANNEL_CHANGED']);
  });

  test('the channel fails only when no more can come', async () => {
    const { host } = await direct();
    const connection = connectionTo([[host, 1]], { DtlsHelloTimeout: 2_000 });
    let failed = false;
    const connecting = connection.connect().catch((error: unknown) => {
      failed = true;
      return error;
    });
    await scene.world.sim.run(10_000);
    expect(failed).toBe(false);
    connection.endOfDirectCandidates();
    expect(await scene.settle(connecting)).toMatchObject({
      code: 'NO_CHANNELS',
      localChannelErrorCode: 'NONE',
      remoteChannelErrorCode: 'NONE',
      directCandidatesChannelErrorCode: 'NOT_FOUND',
    });
  });

  test('without their end the whole connect times out', async () => {
    const connection = connectionTo([], { ConnectTimeout: 7_000 });
    const began = scene.world.sim.now;
    expect(await scene.code(connection.connect())).toBe('TIMEOUT');
    expect(scene.world.sim.now - began).toBeGreaterThanOrEqual(7_000);
  });

  test('a host that does not resolve is DNS', async () => {
    const connection = connectionTo([['nowhere.invalid', 5592]]);
    connection.endOfDirectCandidates();
    await expect(scene.settle(connection.connect())).rejects.toMatchObject({ directCandidatesChannelErrorCode: 'DNS' });
  });

  test('another device at the address is not taken for the one meant', async () => {
    const { device, host } = await direct();
    const other = connectionTo([[host, device.localPort]], { ProductId: ids.productId, DeviceId: 'de-other', DtlsHelloTimeout: 2_000 });
    other.endOfDirectCandidates();
    await expect(scene.settle(other.connect())).rejects.toMatchObject({ directCandidatesChannelErrorCode: 'NOT_FOUND' });
    const pinned = connectionTo([[host, device.localPort]], { DeviceFingerprint: 'ab'.repeat(32) });
    pinned.endOfDirectCandidates();
    expect(await scene.code(pinned.connect())).toBe('FINGERPRINT_MISMATCH');
  });
});

describe('both channels', () => {
  async function both(address: [string, number] | null, options: ConnectionOptions = {}): Promise<Connection> {
    const connection = scene.connection(options);
    connection.enableDirectCandidates();
    if (address !== null) connection.addDirectCandidate(...address);
    connection.endOfDirectCandidates();
    return connection;
  }

  test('the faster one wins', async () => {
    const { device, host } = await scene.attached();
    const connection = await both([host, device.localPort]);
    await scene.settle(connection.connect());
    expect(connection.getType()).toBe('DIRECT');
    await scene.world.sim.run(5_000);
    expect(device.connection(1).type).toBe('DIRECT');
    expect(() => device.connection(2)).toThrow();
  });

  test('the base station serves when the address is of no use', async () => {
    const { host } = await scene.attached();
    const connection = await both([host, 1]);
    await scene.settle(connection.connect());
    expect(connection.getType()).toBe('RELAY');
  });

  test('when both fail the error has both codes', async () => {
    const { device, host } = await scene.attached();
    await scene.settle(device.close());
    const connection = await both([host, 1], { DtlsHelloTimeout: 2_000 });
    await expect(scene.settle(connection.connect())).rejects.toMatchObject({
      remoteChannelErrorCode: 'NOT_ATTACHED',
      directCandidatesChannelErrorCode: 'NOT_FOUND',
    });
  });

  test('a wrong key at the address does not keep the base station from serving', async () => {
    const { device } = await scene.attached();
    const impostor = await scene.device({ basestationAttach: false, registered: false });
    await scene.start(impostor);
    const connection = await both([impostor.host, impostor.device.localPort], { DeviceFingerprint: device.deviceFingerprint });
    await scene.settle(connection.connect());
    expect(connection.getType()).toBe('RELAY');
    expect(connection.getDeviceFingerprint()).toBe(device.deviceFingerprint);
  });
});

describe('a connect that is stopped', () => {
  /** A connect to one candidate, stopped while its name is resolved or when its session is there. */
  function stopped({ whileResolving }: { whileResolving: boolean }) {
    const stop = new AbortController();
    const candidates = new DirectCandidates();
    candidates.add('10.0.0.1', 1);
    const counts = { dials: 0, closed: 0 };
    const session = { close: async () => void counts.closed++ } as unknown as Session;
    const dial: Host['dial'] = () => {
      counts.dials++;
      stop.abort();
      return { result: Promise.resolve(session), cancel: () => {} };
    };
    const host = { environment: { clock: nodeEnvironment().clock, log: silentLog }, dial } as unknown as Host;
    const resolve = async () => {
      if (whileResolving) stop.abort();
      return ['10.0.0.1'];
    };
    const network = { resolve } as unknown as Network;
    return { counts, connecting: connectDirect(host, network, candidates, { name: 'device', signal: stop.signal }) };
  }

  test('just when a session is there closes that session', async () => {
    const { counts, connecting } = stopped({ whileResolving: false });
    await expect(connecting).rejects.toMatchObject({ code: 'STOPPED' });
    await new Promise((resolve) => setImmediate(resolve));
    expect(counts).toEqual({ dials: 1, closed: 1 });
  });

  test('while a name is resolved dials none of its addresses', async () => {
    const { counts, connecting } = stopped({ whileResolving: true });
    await expect(connecting).rejects.toMatchObject({ code: 'STOPPED' });
    await new Promise((resolve) => setImmediate(resolve));
    expect(counts).toEqual({ dials: 0, closed: 0 });
  });
});
