/**
 * The device's end of a connection, operation by operation: streams, CoAP requests, fingerprints, and language
 * features.
 */
import { beforeEach, describe, expect, test } from 'vitest';
import {
  type AuthorizationRequest,
  type CoapHandler,
  type CoapMethod,
  type ConnectionEvent,
  type ConnectionRef,
  ContentFormat,
  Device,
  type DeviceCoapRequest,
  type DeviceConnection,
  type DeviceEvent,
  type DeviceLogCallback,
  type DeviceLogLevel,
  type DeviceStream,
  errorGetMessage,
  LocalError,
  type PushNotification,
  type ServiceInvocation,
  type Stream,
} from '../../device/index.ts';
import { fileError } from '../../platform/node/files.ts';
import { STATION_PORT } from '../support/fixture/identifiers.ts';
import { ProductFixture } from '../support/fixture/products.ts';

let fixture: ProductFixture;
beforeEach(async () => {
  fixture = await ProductFixture.withStation();
});

const PORT = 5;

/** A stream that a client opened, as the device sees it before it accepts. */
async function incoming() {
  const { device } = await fixture.attached();
  const arrived = new Promise<DeviceStream>((resolve) => device.addStreamListener(PORT, resolve));
  const connection = await fixture.connected();
  const client = connection.openStream(PORT);
  return { device, connection, client, opening: client.opened, arrived: await fixture.settle(arrived) };
}

/** Both ends of an open stream. */
async function both() {
  const { client, opening, arrived, ...rest } = await incoming();
  const stream: Stream = arrived.accept();
  await fixture.settle(opening);
  return { client, stream, ...rest };
}

describe('a stream of the device', () => {
  test('is accepted once, and has its connection', async () => {
    const { device, connection, opening, arrived } = await incoming();
    expect(arrived.port).toBe(PORT);
    expect(device.connection(arrived.connection.ref)).toBe(arrived.connection);
    expect(arrived.connection.clientFingerprint).toBe(connection.getClientFingerprint());
    arrived.accept();
    await fixture.settle(opening);
    expect(() => arrived.accept()).toThrow(expect.objectContaining({ code: 'INVALID_STATE' }));
  });

  test('reads available bytes, reads a length, and reads to the end', { tags: ['slow'] }, async () => {
    const { client, stream } = await both();
    await fixture.settle(client.write(new Uint8Array([1, 2, 3, 4, 5, 6, 7])));
    expect(await fixture.settle(stream.read(2))).toEqual(new Uint8Array([1, 2]));
    expect(await fixture.settle(stream.readAll(3))).toEqual(new Uint8Array([3, 4, 5]));
    await fixture.settle(client.close());
    expect(await fixture.settle(stream.readAll(100))).toEqual(new Uint8Array([6, 7]));
    expect(await fixture.code(stream.read())).toBe('END_OF_FILE');
  });

  test('writes and closes: the client reads to the end', { tags: ['slow'] }, async () => {
    const { client, stream } = await both();
    await fixture.settle(stream.write(new Uint8Array([8, 9])));
    await fixture.settle(stream.close());
    expect(await fixture.code(stream.write(new Uint8Array(1)))).toBe('CLOSED');
    expect(await fixture.settle(client.readAll(2))).toEqual(new Uint8Array([8, 9]));
    expect(await fixture.code(client.read())).toBe('END_OF_FILE');
  });

  test('aborts: pending operations end with STOPPED at both ends', { tags: ['slow'] }, async () => {
    const { client, stream } = await both();
    const reads = Promise.allSettled([stream.read(), client.read()]);
    stream.abort();
    const codes = (await fixture.settle(reads)).map((read) => read.status === 'rejected' && read.reason.code);
    expect(codes).toEqual(['STOPPED', 'STOPPED']);
  });
});

describe('a CoAP request to the device', () => {
  test('shows the request, and the handler returns the answer', { tags: ['slow'] }, async () => {
    const { device } = await fixture.attached();
    device.addCoapResource('PUT', '/rooms/{room}', ({ method, path, parameters, contentFormat, payload, connection }) => ({
      status: 205,
      contentFormat: ContentFormat.APPLICATION_JSON,
      payload: JSON.stringify({ method, path, parameters, contentFormat, payload: [...payload], ref: connection.ref }),
    }));
    const connection = await fixture.connected();
    const { status, format, text } = await fixture.settle(connection.put('/rooms/attic', new Uint8Array([1, 2])));
    expect([status, format]).toEqual([205, ContentFormat.APPLICATION_JSON]);
    expect(JSON.parse(text)).toEqual({
      method: 'PUT',
      path: '/rooms/attic',
      parameters: { room: 'attic' },
      contentFormat: 42,
      payload: [1, 2],
      ref: 1,
    });
  });

  test('may end with an error: a status with a text, without content format', { tags: ['slow'] }, async () => {
    const { device } = await fixture.attached();
    device.addCoapResource('GET', '/closed', () => ({ status: 403, payload: 'not now' }));
    const connection = await fixture.connected();
    const { status, text, format } = await fixture.settle(connection.get('/closed'));
    expect([status, text, format]).toEqual([403, 'not now', undefined]);
  });

  test('is answered with the reason when a save fails, without the path; other failures give no reason', { tags: ['slow'] }, async () => {
    const { device } = await fixture.attached();
    const full = fileError('cannot write', '/data/state.json', Object.assign(new Error('full'), { code: 'ENOSPC' }));
    const failing: Record<string, () => never> = {
      '/full': () => {
        throw full;
      },
      '/users': () => {
        throw new LocalError('FAILED', 'the change could not be saved', { cause: full });
      },
      '/sealed': () => {
        throw new LocalError('FAILED', 'cannot be unsealed', { cause: new LocalError('INVALID_ARGUMENT', 'sealed elsewhere') });
      },
      '/bug': () => {
        throw new TypeError('x is undefined');
      },
    };
    const connection = await fixture.connected();
    const answers: string[] = [];
    for (const [path, handler] of Object.entries(failing)) {
      device.addCoapResource('PUT', path, handler);
      const { status, text } = await fixture.settle(connection.put(path));
      answers.push(`${status} ${text}`);
    }
    const saved = '500 The device could not save it';
    expect(answers).toEqual([saved, saved, '500 Request unhandled', '500 Request unhandled']);
  });

  test('is not found once its resource is removed, and the path can be used again', { tags: ['slow'] }, async () => {
    const { device } = await fixture.attached();
    const once = device.addCoapResource('GET', '/once', () => ({ status: 205 }));
    device.addCoapResource('PUT', '/once', () => ({ status: 204 }));
    const connection = await fixture.connected();
    expect((await fixture.coap(connection, 'GET', '/once')).status).toBe(205);
    once.remove();
    expect((await fixture.coap(connection, 'GET', '/once')).status).toBe(404);
    expect((await fixture.coap(connection, 'PUT', '/once')).status).toBe(204);
    device.addCoapResource('GET', '/once', () => ({ status: 203 }));
    once.remove();
    expect((await fixture.coap(connection, 'GET', '/once')).status).toBe(203);
  });

  test('is answered although its resource is removed meanwhile', async () => {
    const { device } = await fixture.attached();
    let answer = () => {};
    const slow = device.addCoapResource('GET', '/slow', () => new Promise((done) => (answer = () => done({ status: 205 }))));
    const done = (await fixture.connected()).get('/slow');
    await fixture.sim.run(1_000);
    slow.remove();
    answer();
    expect(await fixture.settle(done)).toMatchObject({ status: 205 });
  });
});

describe('fingerprints', () => {
  test('of device and client are available in full, and in a short form for people', { tags: ['slow'] }, async () => {
    const { device } = await fixture.attached();
    const opened = new Promise<DeviceConnection>((resolve) => device.onConnectionEvent(resolve));
    const connection = await fixture.connected();
    const { clientFingerprint, clientFingerprintHex } = await fixture.settle(opened);
    expect(clientFingerprint).toBe(connection.getClientFingerprint());
    expect(clientFingerprintHex).toBe(clientFingerprint.slice(0, 32));
    expect(device.deviceFingerprint).toBe(connection.getDeviceFingerprint());
    expect(device.deviceFingerprintHex).toBe(device.deviceFingerprint.slice(0, 32));
  });
});

describe('settings of a device', () => {
  test('can be read after they are set, and the ports in use once it runs', async () => {
    const { device } = await fixture.device();
    device.setProductId('pr-2');
    device.setDeviceId('de-2');
    device.setAppName('Boiler');
    device.setAppVersion('7.1');
    device.setP2pPort(0);
    expect([device.productId, device.deviceId, device.appName, device.appVersion]).toEqual(['pr-2', 'de-2', 'Boiler', '7.1']);
    expect([device.localPort, device.p2pPort]).toEqual([5592, 0]);
    await fixture.settle(device.start());
    expect(device.p2pPort).toBeGreaterThan(0);
  });

  test('use the server’s port where its URL has none', { tags: ['slow'] }, async () => {
    const reached = await fixture.device({ serverUrl: 'https://station' });
    reached.device.setServerPort(STATION_PORT);
    await fixture.start(reached);
    await fixture.until(reached, 'ATTACHED');
    const lost = await fixture.device({ serverUrl: 'https://station', deviceId: 'de-2' });
    lost.device.setServerPort(STATION_PORT + 1);
    await fixture.start(lost);
    await fixture.sim.run(30_000);
    expect(lost.events).toEqual([]);
  });

  test('include a server connect token that is made, added and uploaded', { tags: ['slow'] }, async () => {
    const { device } = await fixture.attached();
    const token = device.createServerConnectToken();
    expect(token).toMatch(/^[A-Za-z0-9]{12}$/);
    expect(device.areServerConnectTokensSynchronized()).toBe(true);
    device.addServerConnectToken(token);
    await fixture.sim.run(() => device.areServerConnectTokensSynchronized());
    expect((await fixture.connected({ ServerConnectToken: token })).getType()).toBe('RELAY');
  });
});

describe('listeners and handlers get', () => {
  test('typed events, connections and messages', { tags: ['slow'] }, async () => {
    const { device } = await fixture.device();
    const events: DeviceEvent[] = [];
    const connections: [ConnectionRef, ConnectionEvent][] = [];
    const methods: CoapMethod[] = [];
    const texts: string[] = [];
    const tell: DeviceLogCallback = ({ message }) => texts.push(message);
    const handler: CoapHandler = ({ method }: DeviceCoapRequest) => {
      methods.push(method);
      throw new Error('of the application');
    };
    const level: DeviceLogLevel = 'error';
    device.setLogLevel(level);
    device.setLogCallback(tell);
    device.onDeviceEvent((event) => events.push(event));
    device.onConnectionEvent(({ ref }, event) => connections.push([ref, event]));
    device.addCoapResource('DELETE', '/x', handler);
    const unsent: [PushNotification, ServiceInvocation] = [device.createPushNotification(), device.createServiceInvocation()];
    expect([await fixture.code(unsent[0].send()), await fixture.code(unsent[1].execute())]).toEqual(['INVALID_STATE', 'INVALID_STATE']);
    await fixture.settle(device.start());
    await fixture.sim.run(() => events.length > 0);
    expect((await fixture.coap(await fixture.connected(), 'DELETE', '/x')).status).toBe(500);
    expect([events, connections, methods, texts]).toEqual([['ATTACHED'], [[1, 'OPENED']], ['DELETE'], ['a CoAP handler failed']]);
  });

  test('an authorization request with action, attributes and connection, and return the verdict', { tags: ['slow'] }, async () => {
    const { device } = await fixture.attached();
    const asked: AuthorizationRequest[] = [];
    device.onAuthorizationRequest((request) => {
      asked.push(request);
      return request.action === 'Thermostat:Get';
    });
    const connection = await fixture.connected();
    await fixture.sim.run(1_000);
    const asking = device.connection(1);
    expect(await device.authorize(asking, 'Thermostat:Get', { 'Thermostat:Room': 'attic', 'Thermostat:Unit': 'C' })).toBe(true);
    expect(await device.authorize(asking, 'Thermostat:Set')).toBe(false);
    const [first] = asked;
    expect(first?.connection.clientFingerprint).toBe(connection.getClientFingerprint());
    expect(Object.entries(first?.attributes ?? {})).toEqual([
      ['Thermostat:Room', 'attic'],
      ['Thermostat:Unit', 'C'],
    ]);
    expect(asked.map(({ action }) => action)).toEqual(['Thermostat:Get', 'Thermostat:Set']);
  });
});

describe('the language gives:', () => {
  test('close ends pending operations at once, and no event follows', { tags: ['slow'] }, async () => {
    const { device, events, host } = await fixture.attached();
    let answer = () => {};
    device.addCoapResource('GET', '/slow', () => new Promise((done) => (answer = () => done({ status: 205 }))));
    const notification = device.createPushNotification();
    notification.setProjectId('p');
    notification.setPayload('{}');
    const connection = await fixture.connected();
    // The base station's answer arrives after the end.
    fixture.sim.link(host, 'station', { delay: 300 });
    const request = connection.get('/slow');
    const ends = Promise.allSettled([request, notification.send()]);
    await fixture.settle(device.close());
    expect(events).toEqual(['ATTACHED', 'DETACHED', 'CLOSED']);
    answer();
    device.onConnectionEvent(() => expect.unreachable());
    const codes = (await fixture.settle(ends)).map((end) => end.status === 'rejected' && end.reason.code);
    expect(codes).toEqual(['STOPPED', 'STOPPED']);
    await fixture.sim.run(60_000);
    expect(events).toHaveLength(3);
  });

  test('a future is a promise: awaited, awaited with a limit, passed to a callback, with its code in the error', async () => {
    const device = new Device();
    const ready: string[] = [];
    const future = device.start().then(
      () => 'OK',
      (error: LocalError) => error.code,
    );
    void future.then((code) => ready.push(code));
    expect(await future).toBe('INVALID_STATE');
    expect(ready).toEqual(['INVALID_STATE']);
    const limit = AbortSignal.timeout(1);
    const never = new Promise<never>((_, reject) => limit.addEventListener('abort', () => reject(limit.reason)));
    await expect(Promise.race([new Promise(() => {}), never])).rejects.toMatchObject({ name: 'TimeoutError' });
  });

  test('a listener is a function, and the returned function removes it', async () => {
    const under = await fixture.device();
    const heard: string[] = [];
    const remove = under.device.onDeviceEvent((event) => heard.push(event));
    await fixture.start(under);
    await fixture.until(under, 'ATTACHED');
    remove();
    await fixture.settle(under.device.close());
    expect(heard).toEqual(['ATTACHED']);
    expect(under.events).toEqual(['ATTACHED', 'DETACHED', 'CLOSED']);
  });

  test('a code is its own name, and has a message', () => {
    const { code, message } = new LocalError('ADDRESS_IN_USE', 'port 5592 is taken');
    expect([code, message]).toEqual(['ADDRESS_IN_USE', 'port 5592 is taken']);
    expect(errorGetMessage(code)).toBe('the UDP port configured for the device is already in use');
    expect(errorGetMessage('no such code')).toBe(errorGetMessage('UNKNOWN'));
  });

  test('the version is that of the package', async () => {
    const { default: manifest } = await import('../../package.json', { with: { type: 'json' } });
    expect(Device.version()).toBe(manifest.version);
  });
});
