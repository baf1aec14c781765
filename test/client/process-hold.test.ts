/** What of a client keeps its process alive, over loopback. That a process ends: test/e2e/client-exit.test.ts. */
import { beforeEach, describe, expect, test } from 'vitest';
import { type Connection, type Environment, nodeEnvironment, type SvcClient } from '../../client/node.ts';
import type { DeviceUnderTest } from '../support/fixture/devices-and-clients.ts';
import { LoopbackFixture } from '../support/fixture/loopback.ts';

let fixture: LoopbackFixture;
let under: DeviceUnderTest;
let client: SvcClient;
/** Of the client: how often something holds the process, sockets that were opened, and those of them that let it go. */
let held: number;
let sockets: { opened: number; unreferenced: number };

beforeEach(async () => {
  [held, sockets] = [0, { opened: 0, unreferenced: 0 }];
  fixture = new LoopbackFixture();
  under = fixture.device();
  await fixture.start(under);
  client = fixture.client(watched());
});

function watched(): Environment {
  const environment = nodeEnvironment();
  const { network } = environment;
  const bind: typeof network.bind = async (options) => {
    const socket = await network.bind(options);
    const unref = socket.unref?.bind(socket);
    sockets.opened++;
    socket.unref = () => {
      sockets.unreferenced++;
      unref?.();
    };
    return socket;
  };
  const keepProcess = (): (() => void) => {
    held++;
    return () => void held--;
  };
  return { ...environment, keepProcess, network: { ...network, bind } };
}

function connection(port = under.device.localPort): Connection {
  return fixture.directConnection('127.0.0.1', port, { DeviceFingerprint: under.device.deviceFingerprint }, client);
}

test('its sockets do not', async () => {
  await connection().connect();
  expect(sockets.opened).toBeGreaterThan(0);
  expect(sockets.unreferenced).toBe(sockets.opened);
});

describe('a connection does', () => {
  test('while it connects and while it is open, together with others once', async () => {
    const [first, second] = [connection(), connection()];
    const connecting = first.connect();
    expect(held).toBe(1);
    await Promise.all([connecting, second.connect()]);
    expect(held).toBe(1);
    await first.close();
    expect(held).toBe(1);
    await second.close();
    expect(held).toBe(0);
  });

  test('not when it could not connect, or was closed while it did', async () => {
    const failing = connection();
    const stopped = failing.connect();
    await failing.close();
    await expect(stopped).rejects.toMatchObject({ code: 'STOPPED' });
    expect(held).toBe(0);
    const other = fixture.directConnection('127.0.0.1', under.device.localPort, { DeviceFingerprint: 'ab'.repeat(32) }, client);
    await expect(other.connect()).rejects.toMatchObject({ code: 'FINGERPRINT_MISMATCH' });
    expect(held).toBe(0);
  });

  test('not when the device has ended it', async () => {
    const ended = connection();
    await ended.connect();
    const closed = new Promise((resolve) =>
      ended.addConnectionEventsListener({ onEvent: (event) => event === 'CLOSED' && resolve(event) }),
    );
    await under.device.close();
    await closed;
    expect(held).toBe(0);
  });
});

test('stopping does, until it is done', async () => {
  await connection().connect();
  const stopping = client.stop();
  expect(held).toBe(1);
  await stopping;
  expect(held).toBe(0);
});
