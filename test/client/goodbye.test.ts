/** How a device, a client and a base station end in order: over the relay, over WebSockets, and directly. */
import { describe, expect, test } from 'vitest';
import { codeOf } from '../support/code-of.ts';
import { ProductFixture } from '../support/fixture/products.ts';
import { recordEvents } from '../support/recorded-events.ts';

const WAYS = ['over the relay', 'over WebSockets', 'directly'] as const;

/** A device and a client, connected for `ms`; a request that the device does not answer is under way. */
async function connected(way: (typeof WAYS)[number], ms: number) {
  const fixture = new ProductFixture();
  const station = await fixture.station();
  const under = await fixture.device();
  const { device, host } = under;
  const seen: string[] = [];
  const machine = fixture.host('client');
  if (way === 'over WebSockets') for (const each of [host, machine.name]) fixture.sim.block(each, 'udp');
  device.onConnectionEvent((_, event) => seen.push(`device: ${event}`));
  device.addCoapResource('GET', '/never', () => new Promise(() => {}));
  await fixture.start(under);
  await fixture.until(under, 'ATTACHED');
  const client = fixture.client(machine);
  const connection = way === 'directly' ? fixture.directConnection(host, device.localPort, {}, client) : fixture.connection({}, client);
  await fixture.settle(connection.connect());
  recordEvents(connection, seen);
  const request = codeOf(() => connection.get('/never'));
  await fixture.sim.run(ms);
  seen.length = 0;
  return { fixture, station, device, events: under.events, client, connection, request, seen };
}

describe.each(WAYS)('%s', (way) => {
  test.each([
    ['that has just connected', 0, []],
    ['whose request under way then fails', 500, ['device: CLOSED']],
  ])('a device that closes ends the connection of a client %s', async (_, ms, atDevice) => {
    const { fixture, device, connection, request, seen } = await connected(way, ms);
    const closing = device.close();
    await fixture.sim.run(100);
    expect(seen).toEqual([...atDevice, 'close']);
    expect(connection.closeReason).toMatchObject({ code: 'CLOSED' });
    expect(await fixture.settle(request)).toBe('STOPPED');
    await fixture.settle(closing);
  });

  test('a client that stops ends its connection at the device, too', async () => {
    const { fixture, client, request, seen } = await connected(way, 500);
    await fixture.settle(client.stop());
    await fixture.sim.run(50);
    expect(seen).toEqual(['close', 'device: CLOSED']);
    expect(await fixture.settle(request)).toBe('STOPPED');
  });

  test('a base station that closes detaches the device at once, and a connection that it relays rests', async () => {
    const { fixture, station, connection, events, seen } = await connected(way, 500);
    const closing = station.basestation.close();
    await fixture.sim.run(100);
    expect(events).toEqual(['ATTACHED', 'DETACHED']);
    expect(seen).toEqual(way === 'directly' ? [] : ['rest']);
    const told = { code: 'CLOSED', message: expect.stringContaining('shutting down') };
    expect(connection.restReason).toEqual(way === 'directly' ? null : expect.objectContaining(told));
    await fixture.settle(closing);
  });
});
