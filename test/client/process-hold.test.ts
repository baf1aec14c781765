/** What keeps the process of a client alive, in virtual time. That a process ends: test/e2e/client-exit.test.ts. */
import { beforeEach, describe, expect, test } from 'vitest';
import type { Connection, Environment, SvcClient } from '../../client/node.ts';
import type { BoundSocket } from '../../platform/environment.ts';
import type { SimulatedHost } from '../../testing/index.ts';
import type { DeviceUnderTest } from '../support/fixture/devices-and-clients.ts';
import { ProductFixture } from '../support/fixture/products.ts';

let fixture: ProductFixture;
let under: DeviceUnderTest;
let client: SvcClient;
/**
 * Of the client: how many holds of the process there are, sockets that were opened, and those of them that are
 * unreferenced.
 */
let held: number;
let sockets: { opened: number; unreferenced: number };

beforeEach(async () => {
  [held, sockets] = [0, { opened: 0, unreferenced: 0 }];
  fixture = await ProductFixture.withStation();
  under = await fixture.attached();
  client = fixture.client(withProcess(fixture.host('client')));
});

/** A simulated host with a process to end. */
function withProcess({ clock, crypto, network, log, createCore }: SimulatedHost): Environment {
  const counted = async (opening: Promise<BoundSocket>): Promise<BoundSocket> => {
    const socket = await opening;
    sockets.opened++;
    return Object.assign(socket, { unref: () => void sockets.unreferenced++ });
  };
  const keepProcess = (): (() => void) => {
    held++;
    return () => void held--;
  };
  return {
    ...{ clock, crypto, log, createCore, keepProcess },
    network: {
      bind: (options) => counted(network.bind(options)),
      connect: (options) => network.connect(options),
      resolve: (host) => network.resolve(host),
    },
  };
}

const connection = (DeviceId = under.device.deviceId ?? ''): Connection => fixture.connection({ DeviceId }, client);

test('sockets do not hold the process', async () => {
  await fixture.settle(connection().connect());
  expect(sockets.opened).toBeGreaterThan(0);
  expect(sockets.unreferenced).toBe(sockets.opened);
});

describe('a connection holds the process', () => {
  test('while it connects and while it is open, once for all connections', { tags: ['slow'] }, async () => {
    const [first, second] = [connection(), connection()];
    const connecting = Promise.all([first.connect(), second.connect()]);
    expect(held).toBe(1);
    await fixture.settle(connecting);
    expect(held).toBe(1);
    await fixture.settle(first.close());
    expect(held).toBe(1);
    await fixture.settle(second.close());
    expect(held).toBe(0);
  });

  test('no longer when it could not connect, or was closed while connecting', async () => {
    expect(await fixture.code(connection('de-none').connect())).toBe('NO_CHANNELS');
    expect(held).toBe(0);
    const stopped = connection();
    const connecting = stopped.connect();
    void stopped.close();
    expect(await fixture.code(connecting)).toBe('STOPPED');
    expect(held).toBe(0);
  });

  test('no longer when the device has ended it', { tags: ['slow'] }, async () => {
    const ended = connection();
    await fixture.settle(ended.connect());
    // The device knows of it once a packet of it has arrived.
    await fixture.sim.run(100);
    void under.device.connection(1).close();
    await fixture.sim.run(() => !ended.isConnected, 10_000);
    expect(held).toBe(0);
  });
});

test('stop holds the process until it is done', { tags: ['slow'] }, async () => {
  await fixture.settle(connection().connect());
  const stopping = client.stop();
  expect(held).toBe(1);
  await fixture.settle(stopping);
  expect(held).toBe(0);
});
