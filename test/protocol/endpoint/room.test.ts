/** Full sockets: which connections wait for them, and which do not. */
import { setImmediate as nextTask } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { Core } from '../../../bindings/index.ts';
import type { Connection } from '../../../protocol/connection/index.ts';
import type { PacketBatch } from '../../../protocol/endpoint/batch.ts';
import type { Path } from '../../../protocol/path.ts';
import { dial, type PolledEndpoint, pair } from '../../support/fixture/endpoints.ts';
import { collectGarbage } from '../../support/garbage.ts';

const LENGTH = 500_000;

interface TwoSockets {
  client: PolledEndpoint;
  device: PolledEndpoint;
  /** Two connections to one device; the second leaves by socket 1. */
  connections: [Connection, Connection];
  now: () => number;
}

/** The same device through another socket. */
function through(socket: number, path: Path): Path {
  return { ...path, socket, key: `${path.key}#${socket}` };
}

function twoSockets(): TwoSockets {
  // Little memory and large packets: the fewest possible packet slots.
  const { network, client, device } = pair(7, { client: { core: Core.create({ connections: 8, memory: 1 << 20, maxPacketSize: 5000 }) } });
  const path = client.path(device);
  const first = dial(client, device);
  const second = dial(client, device, { path: through(1, path) });
  expect(network.run(() => first.state === 'open' && second.state === 'open' && device.accepted.length === 2)).toBe(true);
  network.pass(500);
  return { client, device, connections: [first, second], now: () => network.now };
}

/** Gives a connection more to send than its window allows. */
function fill(connection: Connection): void {
  connection.streams.write(connection.streams.open(1), new Uint8Array(LENGTH));
}

/**
 * Makes all packets that can leave now and counts them by socket. Releases them unless `onBatch` does something else.
 */
function transmitted(
  { client, now }: TwoSockets,
  room: (socket: number) => number,
  onBatch: (batch: PacketBatch) => void = giveBack,
): number[] {
  const packets = [0, 0];
  for (let batch = client.endpoint.transmit(now(), room); batch !== null; batch = client.endpoint.transmit(now(), room)) {
    packets[batch.path.socket]! += batch.count;
    onBatch(batch);
  }
  return packets;
}

function giveBack(batch: PacketBatch): void {
  for (const offset of batch.offsets.slice(0, batch.count)) batch.release(offset);
}

/** Room for any number of packets in all sockets but one. */
const except =
  (full: number) =>
  (socket: number): number =>
    socket === full ? 0 : Number.POSITIVE_INFINITY;

describe('a full socket', () => {
  it('blocks its own connections and no others, until there is room', () => {
    const ends = twoSockets();
    for (const connection of ends.connections) fill(connection);
    const [none, some] = transmitted(ends, except(0));
    expect(none).toBe(0);
    expect(some).toBeGreaterThan(5);
    expect(transmitted(ends, except(0))).toEqual([0, 0]);
    expect(transmitted(ends, () => 100)).toEqual([some, 0]);
  });

  it('gets no larger batch than it has room for', () => {
    const ends = twoSockets();
    fill(ends.connections[0]);
    let room = 3;
    const [count] = transmitted(
      ends,
      () => room,
      (batch) => {
        expect(batch.count).toBeLessThanOrEqual(3);
        room -= batch.count;
        giveBack(batch);
      },
    );
    expect(count).toBe(3);
  });

  it('does not make the timers of its connections spin', () => {
    const ends = twoSockets();
    fill(ends.connections[0]);
    const { network, endpoint } = ends.client;
    const end = network.now + 2000;
    let timeouts = 0;
    for (; network.now < end; timeouts++) {
      endpoint.handleTimeout(network.now);
      transmitted(ends, except(0));
      network.elapse(Math.min(end, endpoint.nextTimeout()) - network.now);
    }
    expect(timeouts).toBeLessThan(50);
  });

  it('does not keep a connection from challenging another path', () => {
    const ends = twoSockets();
    const [first] = ends.connections;
    first.paths.supplyIds();
    ends.client.network.pass(500);
    fill(first);
    expect(transmitted(ends, except(0))).toEqual([0, 0]);
    const other = through(1, ends.client.path(ends.device, 4444));
    expect(first.paths.add(other, ends.now())).toBe(true);
    expect(transmitted(ends, except(0))).toEqual([0, 1]);
  });

  it('does not keep an ended connection from being forgotten', () => {
    const ends = twoSockets();
    const [first] = ends.connections;
    fill(first);
    transmitted(ends, except(0));
    first.close(0, '', ends.now());
    transmitted(ends, except(0));
    ends.client.network.pass(60_000);
    expect(transmitted(ends, () => 100)).toEqual([0, 0]);
    expect(ends.client.endpoint.stats.connections).toBe(1);
  });
});

it('a socket that stalls for ever keeps no reference to an ended connection', { tags: ['slow'] }, async () => {
  const { ended, endpoint } = endWhileHeld(except(0));
  // The target of a new WeakRef stays alive until the end of the task.
  await nextTask();
  collectGarbage();
  expect([ended.deref(), endpoint.stats.connections]).toEqual([undefined, 1]);
});

/**
 * Ends the first connection while it has more to send than `room` takes. On return only the endpoint may still refer to
 * it.
 */
function endWhileHeld(room: (socket: number) => number): { ended: WeakRef<Connection>; endpoint: PolledEndpoint['endpoint'] } {
  const ends = twoSockets();
  const { network, endpoint, accepted, endpointEvents, events } = ends.client;
  const [first] = ends.connections;
  fill(first);
  transmitted(ends, room);
  first.close(0, '', network.now);
  while (endpoint.stats.connections > 1) {
    for (let event = endpoint.nextEvent(); event !== null; event = endpoint.nextEvent()) {
      if (event.kind === 'active') while (event.connection.nextEvent() !== null);
    }
    transmitted(ends, room);
    network.elapse(Math.max(1, endpoint.nextTimeout() - network.now));
    endpoint.handleTimeout(network.now);
  }
  for (const list of [accepted, endpointEvents, events]) list.length = 0;
  return { ended: new WeakRef(first), endpoint };
}

describe('packets that a stalled socket keeps', () => {
  it('leave the other slots to another connection, which sends again once some of its own are released', () => {
    const ends = twoSockets();
    const { network, endpoint } = ends.client;
    const more = Array.from({ length: 4 }, () => dial(ends.client, ends.device));
    expect(network.run(() => more.every(({ state }) => state === 'open'))).toBe(true);
    network.pass(500);
    for (const connection of [...ends.connections, ...more]) fill(connection);
    const room = [endpoint.slots - 8, 0];
    const kept: PacketBatch['release'][] = [];
    const transmit = (): number[] =>
      transmitted(
        ends,
        (socket) => room[socket]!,
        (batch) => {
          const { socket } = batch.path;
          room[socket]! -= batch.count;
          if (socket === 1) for (const offset of batch.offsets.slice(0, batch.count)) kept.push(() => batch.release(offset));
        },
      );
    expect(transmit()).toEqual([endpoint.slots - 8, 0]);
    room[1] = 100;
    expect(transmit()).toEqual([0, 8]);
    // No slot is free: the connection gets none although its socket has room.
    network.elapse(10);
    expect(transmit()).toEqual([0, 0]);
    for (const release of kept.splice(0, 4)) release(0);
    expect(transmit()[1]).toBeGreaterThan(0);
  });
});
