/**
 * A connection that lost its route continues over another one (PROTOCOL.md §6): who may offer one, and what strangers
 * can fill.
 */
import { describe, expect, it } from 'vitest';
import { LocalError } from '../../../protocol/errors/index.ts';
import { encodeReset } from '../../../protocol/packet/index.ts';
import type { Path } from '../../../protocol/path.ts';
import { thrownCode } from '../../support/code-of.ts';
import type { PolledEndpoint } from '../../support/fixture/endpoints.ts';
import { CLIENT_ROUTE, CLIENT_TOKEN, DEVICE_ROUTE, DEVICE_TOKEN, type Relayed, route, setup } from '../../support/fixture/relayed.ts';

const SECOND_TOKEN = new Uint8Array(16).fill(0x33);

function openRelayed(): Relayed {
  const relayed = setup();
  relayed.introduce();
  relayed.network.pass(500);
  relayed.connection.allowRest();
  relayed.device.accepted[0]!.allowRest();
  return relayed;
}

/** The station ends the route and reports that to both ends. */
function endRoute({ client, device, station, network }: Relayed): void {
  client.endpoint.receive(encodeReset({ id: CLIENT_ROUTE, token: CLIENT_TOKEN }), client.path(station), network.now);
  device.endpoint.receive(encodeReset({ id: DEVICE_ROUTE, token: DEVICE_TOKEN }), device.path(station), network.now);
}

/**
 * The n-th route of the client: a path through the same station port, whose ids the fixture's station swaps like the
 * first ones.
 */
function routeOf(endpoint: PolledEndpoint, station: PolledEndpoint, n: number): Path {
  return route(endpoint.path(station), Uint8Array.of(n, 0, 0, 0, 0, 0, 0, n));
}

describe('a connection whose route ended', () => {
  it('ends with CLOSED if it may not rest', { tags: ['slow'] }, () => {
    const relayed = setup();
    relayed.introduce();
    relayed.network.pass(500);
    endRoute(relayed);
    relayed.network.pass(10);
    expect(relayed.client.find('closed')?.error?.code).toBe('CLOSED');
  });

  it('rests for a minute, and then ends with CLOSED and the reason', () => {
    const relayed = openRelayed();
    endRoute(relayed);
    relayed.network.pass(59_900);
    expect([relayed.connection.state, relayed.device.accepted[0]!.state]).toEqual(['open', 'open']);
    expect(relayed.connection.restReason?.message).toContain('the route through the base station ended');
    relayed.network.pass(200);
    for (const end of [relayed.client, relayed.device])
      expect(end.find('closed')?.error).toMatchObject({
        code: 'CLOSED',
        message: 'the route through the base station ended; there was no other path within 60 s',
      });
    expect(relayed.connection.stats()).toMatchObject({ rests: 1, restTime: 60_000 });
  });

  it('continues over a route offered to the device, and accepts messages meanwhile', () => {
    const relayed = openRelayed();
    const { client, device, station, network, connection, clientPath, devicePath } = relayed;
    connection.messages.send(Uint8Array.of(1));
    endRoute(relayed);
    connection.messages.send(Uint8Array.of(2));
    device.accepted[0]!.messages.send(Uint8Array.of(3));
    network.pass(20_000);
    expect(device.find('message')).toBeUndefined();
    device.endpoint.offerRoute(connection.paths.remoteId(), devicePath, network.now, { routeResetToken: SECOND_TOKEN });
    const fresh = route(client.path(station), CLIENT_ROUTE);
    expect(connection.paths.resume(fresh, network.now)).toBe(true);
    network.pass(500);
    expect(device.events.filter(([, { kind }]) => kind === 'message').map(([, event]) => (event as { data: Uint8Array }).data[0])).toEqual([
      1, 2,
    ]);
    expect(client.find('message')?.data).toEqual(Uint8Array.of(3));
    expect(client.kinds().filter((kind) => ['resting', 'resumed', 'path', 'closed'].includes(kind))).toEqual([
      'resting',
      'path',
      'resumed',
    ]);
    expect(connection.path).toBe(fresh);
    expect(connection.stats()).toMatchObject({ rests: 1 });
    expect(connection.stats()!.restTime).toBeGreaterThan(20_000);
    // The lost route is no longer used, and the new one ends as the first did.
    expect(client.endpoint.usesRoute(clientPath)).toBe(false);
    device.endpoint.receive(encodeReset({ id: DEVICE_ROUTE, token: SECOND_TOKEN }), device.path(station), network.now);
    network.pass(10);
    expect(device.accepted[0]!.restReason).not.toBeNull();
  });

  it('can accept a stream that was opened before a rest longer than the time for that', () => {
    const relayed = openRelayed();
    const { client, device, station, network, connection, devicePath } = relayed;
    const id = connection.streams.open(1);
    network.pass(500);
    endRoute(relayed);
    network.pass(40_000);
    device.endpoint.offerRoute(connection.paths.remoteId(), devicePath, network.now);
    connection.paths.resume(route(client.path(station), CLIENT_ROUTE), network.now);
    network.pass(500);
    device.accepted[0]!.streams.accept(id);
    network.pass(500);
    expect(client.kinds()).toContain('accepted');
  });

  it('rests again when the new route ends before the peer was heard, and the same minute continues', () => {
    const relayed = openRelayed();
    const { client, station, network, connection } = relayed;
    endRoute(relayed);
    network.pass(40_000);
    network.tap = () => false;
    const second = routeOf(client, station, 7);
    connection.paths.resume(second, network.now);
    network.pass(5_000);
    expect(client.find('probed')).toMatchObject({ path: second, answered: false, forgotten: false });
    connection.pathLost(second, network.now, connection.restReason!);
    network.pass(14_800);
    expect(connection.state).toBe('open');
    network.pass(400);
    expect(connection.state).not.toBe('open');
  });

  it('gives the route of its next path back when it ends, also after it was idle', () => {
    const { client, device, station, network, connection, devicePath, ...relayed } = openRelayed();
    endRoute({ client, device, station, network, connection, devicePath, ...relayed });
    network.pass(10);
    device.endpoint.offerRoute(connection.paths.remoteId(), devicePath, network.now);
    const fresh = route(client.path(station), CLIENT_ROUTE);
    connection.paths.resume(fresh, network.now);
    network.pass(5_000);
    connection.sweep();
    expect(client.endpoint.usesRoute(fresh)).toBe(true);
    device.accepted[0]!.close(0, '', network.now);
    network.pass(20_000);
    expect([connection.state, client.endpoint.usesRoute(fresh)]).toEqual(['closed', false]);
    expect(client.endpointEvents).toContainEqual({ kind: 'route-unused', path: fresh });
  });

  it('can be closed by its application', () => {
    const relayed = openRelayed();
    endRoute(relayed);
    relayed.network.pass(10);
    relayed.connection.close(0, 'enough', relayed.network.now);
    relayed.network.pass(10_000);
    expect(relayed.client.find('closed')).toMatchObject({ error: null });
    expect(relayed.client.endpoint.idle).toBe(true);
  });
});

it('a connection with another path switches from the lost route at once and forgets it, even a kept one', () => {
  const relayed = openRelayed();
  const { client, device, network, connection, clientPath } = relayed;
  const direct = client.path(device);
  connection.paths.keep(clientPath, 5_000, network.now);
  connection.paths.add(direct, network.now, { keepInterval: 5_000 });
  network.pass(1_000);
  endRoute(relayed);
  network.pass(30);
  expect([connection.path, connection.paths.all]).toEqual([direct, [direct]]);
  expect(client.find('path')).toMatchObject({ path: direct, reason: 'failed-over' });
  expect(client.kinds()).not.toContain('resting');
});

it('a lost route that was kept beside the active path is forgotten, and that is reported', () => {
  const relayed = openRelayed();
  const { client, device, network, connection, clientPath } = relayed;
  const direct = client.path(device);
  connection.paths.keep(clientPath, 5_000, network.now);
  connection.paths.add(direct, network.now, { keepInterval: 5_000 });
  network.pass(1_000);
  expect(connection.paths.migrate(direct, network.now)).toBe(true);
  network.pass(1_000);
  connection.pathLost(clientPath, network.now, new LocalError('CLOSED', 'its route ended'));
  network.pass(10);
  expect([connection.path, connection.paths.all]).toEqual([direct, [direct]]);
  const forgotten = client.events.filter(([, event]) => event.kind === 'probed' && event.path === clientPath && event.forgotten);
  expect(forgotten.map(([, event]) => event)).toEqual([{ kind: 'probed', path: clientPath, answered: false, forgotten: true }]);
});

describe('an offered route', () => {
  it.each([
    ['without an owner', () => new Uint8Array(8).fill(9)],
    ['whose hash does not hold', ({ connection }: Relayed) => connection.paths.remoteId().map((byte, i) => (i === 7 ? byte ^ 1 : byte))],
    ['of another length', () => new Uint8Array(7)],
  ])('is refused for an id %s, and leaves nothing behind', (_, idOf) => {
    const relayed = openRelayed();
    const { device, station, network } = relayed;
    const path = routeOf(device, station, 9);
    expect(thrownCode(() => device.endpoint.offerRoute(idOf(relayed), path, network.now))).toBe('NOT_FOUND');
    expect(device.endpoint.usesRoute(path)).toBe(false);
  });

  it('is refused for an ended connection', () => {
    const relayed = openRelayed();
    const { device, station, network, connection } = relayed;
    const id = connection.paths.remoteId();
    device.accepted[0]!.close(0, '', network.now);
    expect(thrownCode(() => device.endpoint.offerRoute(id, routeOf(device, station, 9), network.now))).toBe('NOT_FOUND');
  });

  it.each([
    ['in use', ({ devicePath }: Relayed) => devicePath],
    [
      'offered already',
      ({ device, station, network, connection }: Relayed) => {
        const path = routeOf(device, station, 50);
        device.endpoint.offerRoute(connection.paths.remoteId(), path, network.now);
        return path;
      },
    ],
  ])('is refused while it is %s, and stays unchanged', (_, taken) => {
    const relayed = openRelayed();
    const { device, network, connection } = relayed;
    const path = taken(relayed);
    expect(thrownCode(() => device.endpoint.offerRoute(connection.paths.remoteId(), path, network.now))).toBe('BAD_REQUEST');
    expect(device.endpoint.usesRoute(path)).toBe(true);
  });

  it('replaces an earlier offer: each connection keeps the newest one, for 30 s', () => {
    const { device, station, network, connection } = openRelayed();
    const paths = Array.from({ length: 16 }, (_, n) => routeOf(device, station, n + 20));
    for (const path of paths) device.endpoint.offerRoute(connection.paths.remoteId(), path, network.now);
    expect(paths.filter((path) => device.endpoint.usesRoute(path))).toEqual([paths[15]]);
    network.pass(29_900);
    const unused = () => device.endpointEvents.filter(({ kind }) => kind === 'route-unused').map((event) => (event as { path: Path }).path);
    expect(unused()).toEqual(paths.slice(0, 15));
    network.pass(200);
    expect(unused()).toEqual(paths);
    expect(device.endpoint.usesRoute(paths[15]!)).toBe(false);
  });

  it('is dropped when the station ends it, and when the connection ends', () => {
    const { device, station, network, connection } = openRelayed();
    const [first, second] = [routeOf(device, station, 30), routeOf(device, station, 31)];
    device.endpoint.offerRoute(connection.paths.remoteId(), first, network.now, { routeResetToken: SECOND_TOKEN });
    device.endpoint.receive(encodeReset({ id: first.route!, token: SECOND_TOKEN }), device.path(station), network.now);
    expect(device.endpoint.usesRoute(first)).toBe(false);
    device.endpoint.offerRoute(connection.paths.remoteId(), second, network.now);
    device.accepted[0]!.close(0, '', network.now);
    network.pass(20_000);
    expect(device.endpoint.usesRoute(second)).toBe(false);
  });

  it('is released once the connection that used it has left it', () => {
    const { client, device, network, connection, clientPath, devicePath } = openRelayed();
    const direct = client.path(device);
    connection.paths.migrate(direct, network.now);
    network.pass(10_000);
    device.endpoint.offerRoute(connection.paths.remoteId(), devicePath, network.now);
    connection.paths.migrate(clientPath, network.now);
    network.pass(5_000);
    expect([connection.path, device.endpoint.usesRoute(devicePath)]).toEqual([clientPath, true]);
    connection.paths.migrate(direct, network.now);
    network.pass(10_000);
    expect([connection.path, device.endpoint.usesRoute(devicePath)]).toEqual([direct, false]);
  });

  it('stays an ordinary path once a packet of the connection arrived on it', () => {
    const { client, device, network, connection, clientPath, devicePath } = openRelayed();
    const direct = client.path(device);
    connection.paths.migrate(direct, network.now);
    network.pass(10_000);
    expect(device.endpoint.usesRoute(devicePath)).toBe(false);
    device.endpoint.offerRoute(connection.paths.remoteId(), devicePath, network.now);
    expect(connection.paths.add(clientPath, network.now, { keepInterval: 5_000 })).toBe(true);
    network.pass(2_000);
    expect(device.accepted[0]!.paths.all).toContain(devicePath);
    expect(thrownCode(() => device.endpoint.offerRoute(connection.paths.remoteId(), routeOf(device, client, 40), network.now))).toBe('OK');
  });
});

describe('a handshake whose route ended before its Complete arrived', () => {
  /** The client holds a connection that rests, the device half a handshake. */
  function openHalf(isReportedToDevice: boolean): Relayed {
    const relayed = setup();
    const { client, network, connection } = relayed;
    const carry = network.tap!;
    network.tap = () => false;
    relayed.introduce();
    network.pass(20);
    connection.allowRest();
    if (isReportedToDevice) endRoute(relayed);
    else client.endpoint.receive(encodeReset({ id: CLIENT_ROUTE, token: CLIENT_TOKEN }), client.path(relayed.station), network.now);
    network.pass(10);
    network.tap = carry;
    expect([relayed.device.endpoint.isAwaited, connection.restReason === null]).toEqual([true, false]);
    return relayed;
  }

  it.each([
    ['reported to both ends', true],
    ['reported to the client', false],
  ])('is completed on a route offered to it, with an end %s, and releases the lost one', (_, isReportedToDevice) => {
    const { client, device, station, network, connection, devicePath } = openHalf(isReportedToDevice);
    connection.messages.send(Uint8Array.of(1));
    const offered = routeOf(device, station, 7);
    device.endpoint.offerRoute(connection.paths.remoteId(), offered, network.now);
    const carry = network.tap!;
    network.tap = (datagram) => {
      if (datagram.from !== client || datagram.bytes[0] !== 0x88) return carry(datagram);
      const bytes = datagram.bytes.slice();
      bytes.set(offered.route!, 1);
      network.deliver({ from: station, to: device, bytes });
      return false;
    };
    connection.paths.resume(route(client.path(station), CLIENT_ROUTE), network.now);
    network.pass(500);
    expect(device.accepted.map(({ path }) => path)).toEqual([offered]);
    expect(device.find('message')?.data).toEqual(Uint8Array.of(1));
    expect([connection.state, connection.restReason]).toEqual(['open', null]);
    expect([devicePath, offered].map((path) => device.endpoint.usesRoute(path))).toEqual([false, true]);
  });

  it('keeps the offer of a handshake that its own route completes, for its connection', () => {
    const relayed = setup();
    const { client, device, station, network, connection, devicePath } = relayed;
    relayed.introduce();
    const offered = routeOf(device, station, 7);
    device.endpoint.offerRoute(connection.paths.remoteId(), offered, network.now);
    network.pass(500);
    expect([device.accepted[0]!.path, device.endpoint.usesRoute(offered)]).toEqual([devicePath, true]);
    connection.close(0, '', network.now);
    network.pass(5_000);
    expect(device.endpoint.usesRoute(offered)).toBe(false);
    expect(client.endpoint.idle).toBe(true);
  });

  it('gives the offered route back when the Complete does not come in 10 s', () => {
    const { device, station, network, connection } = openHalf(true);
    const offered = routeOf(device, station, 7);
    device.endpoint.offerRoute(connection.paths.remoteId(), offered, network.now);
    network.pass(9_000);
    expect(device.endpoint.usesRoute(offered)).toBe(true);
    network.pass(1_100);
    expect(device.endpoint.usesRoute(offered)).toBe(false);
    expect(device.endpointEvents).toContainEqual({ kind: 'route-unused', path: offered });
    expect(thrownCode(() => device.endpoint.offerRoute(connection.paths.remoteId(), offered, network.now))).toBe('NOT_FOUND');
  });
});
