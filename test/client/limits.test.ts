/** How many connections one client may hold, and which options it refuses on creation. */
import { beforeEach, describe, expect, test } from 'vitest';
import { type Connection, SvcClient } from '../../client/node.ts';
import { ProductFixture } from '../support/fixture/products.ts';

let fixture: ProductFixture;
beforeEach(async () => {
  fixture = new ProductFixture();
  await fixture.station({ connectsPerDevice: 10_000, connectsPerAddress: 10_000 });
});

const code = (connecting: Promise<void>): Promise<unknown> =>
  fixture.settle(
    connecting.then(
      () => 'OK',
      (error: { code: string; message: string }) => `${error.code} ${error.message}`,
    ),
  );

test.each<[string, unknown]>([
  ['noCandidatesOn', 'eth0'],
  ['noCandidatesOn', [1]],
  ['noCandidatesOn', null],
  ['mapsPort', 'no'],
])('%s of a client cannot be %j', (name, value) => {
  const refused = expect.objectContaining({ code: 'INVALID_ARGUMENT', message: expect.stringContaining(name) });
  expect(() => SvcClient.create({ environment: fixture.host('any'), [name]: value })).toThrow(refused);
});

describe('maxConnections', () => {
  test('refuses one more connection and names itself; a closed one frees its slot at once', { tags: ['slow'] }, async () => {
    const under = await fixture.device();
    under.device.limitConnections(100);
    await fixture.start(under);
    await fixture.until(under, 'ATTACHED');
    const client = fixture.client(fixture.host('client'), 3);
    const connections = Array.from({ length: 5 }, () => fixture.connection({}, client));
    for (const each of connections.slice(0, 3)) expect(await code(each.connect())).toBe('OK');
    expect(await code(connections[3]!.connect())).toMatch(
      /^OUT_OF_MEMORY this client is at its limit of 3 connections: .* maxConnections$/,
    );
    // It may be retried: nothing has happened.
    await fixture.settle(connections[0]!.close());
    expect(await code(connections[3]!.connect())).toBe('OK');
    for (let round = 0; round < 20; round++) {
      const connection: Connection = fixture.connection({}, client);
      await fixture.settle(connections[1 + (round % 3)]!.close());
      expect(await code(connection.connect())).toBe('OK');
      connections[1 + (round % 3)] = connection;
    }
  });

  test('counts connections that are being made, and frees the slot of one that fails', async () => {
    const client = fixture.client(fixture.host('client'), 1);
    const [first, second] = [fixture.connection({ Remote: false }, client), fixture.connection({ Remote: false }, client)];
    const failing = first.connect();
    expect(await code(second.connect())).toMatch(/^OUT_OF_MEMORY this client is at its limit of 1 connections: .* maxConnections$/);
    expect(await code(failing)).toMatch(/^NO_CHANNELS/);
    expect(await code(second.connect())).toMatch(/^NO_CHANNELS/);
  });

  test('allows more than 64 open connections', { tags: ['slow'] }, async () => {
    const under = await fixture.device();
    under.device.limitConnections(200);
    await fixture.start(under);
    await fixture.until(under, 'ATTACHED');
    const client = SvcClient.create({ environment: fixture.host('client') });
    fixture.ends(() => client.stop());
    const connections = Array.from({ length: 150 }, () => fixture.connection({}, client));
    for (const each of connections) await fixture.settle(each.connect());
    await fixture.sim.run(5_000);
    expect(connections.every(({ closeReason }) => closeReason === null)).toBe(true);
  });

  test.each([0, -1, 1.5, 16_385, Number.NaN])('cannot be %d', (maxConnections) => {
    expect(() => SvcClient.create({ environment: fixture.host('any'), maxConnections })).toThrow(
      expect.objectContaining({ code: 'INVALID_ARGUMENT', message: expect.stringContaining('maxConnections') }),
    );
  });
});
