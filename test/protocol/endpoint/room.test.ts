/** Sockets that take no more packets: whose connections wait, whose do not, and for what. */
import { describe, expect, it } from 'vitest';
import { Core } from '../../../bindings/index.ts';
import type { Connection } from '../../../protocol/connection/index.ts';
import type { PacketBatch } from '../../../protocol/endpoint/batch.ts';
import type { Path } from '../../../protocol/path.ts';
import { dial, type Node, pair } from '../../support/endpoints.ts';

const LENGTH = 500_000;

interface Scene {
  client: Node;
  device: Node;
  /** Two connections to one device; the second leaves by socket 1. */
  connections: [Connection, Connection];
  now: () => number;
}

/** The same device through another socket. */
function through(socket: number, path: Path): Path {
  return { ...path, socket, key: `${path.key}#${socket}` };
}

function scene(): Scene {
  // Little memory and large packets: as few packet slots as there can be.
  const { network, client, device } = pair(7, { client: { core: Core.create({ connections: 8, memory: 1 << 20, maxPacketSize: 5000 }) } });
  const path = client.path(device);
  const first = dial(client, device);
  const second = dial(client, device, { path: through(1, path) });
  expect(network.run(() => first.state === 'open' && second.state === 'open' && device.accepted.length === 2)).toBe(true);
  network.pass(500);
  return { client, device, connections: [first, second], now: () => network.now };
}

/** Gives a connection more to send than its window lets go. */
function fill(connection: Connection): void {
  connection.writeStream(connection.openStream(1), new Uint8Array(LENGTH));
}

/** All packets made now, by socket. Gives them back unless told otherwise. */
function transmitted({ client, now }: Scene, room: (socket: number) => number, onBatch: (batch: PacketBatch) => void = giveBack): number[] {
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
  it('holds back its connections and no others, until there is room', () => {
    const world = scene();
    for (const connection of world.connections) fill(connection);
    const [none, some] = transmitted(world, except(0));
    expect(none).toBe(0);
    expect(some).toBeGreaterThan(5);
    expect(transmitted(world, except(0))).toEqual([0, 0]);
    expect(transmitted(world, () => 100)).toEqual([some, 0]);
  });

  it('gets no more packets in a batch than it has room for', () => {
    const world = scene();
    fill(world.connections[0]);
    let room = 3;
    const [count] = transmitted(
      world,
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
    const world = scene();
    fill(world.connections[0]);
    const { network, endpoint } = world.client;
    const end = network.now + 2000;
    let timeouts = 0;
    for (; network.now < end; timeouts++) {
      endpoint.handleTimeout(network.now);
      transmitted(world, except(0));
      network.now = Math.max(network.now, Math.min(end, endpoint.nextTimeout()));
    }
    expect(timeouts).toBeLessThan(50);
  });

  it('lets a connection challenge another path meanwhile', () => {
    const world = scene();
    const [first] = world.connections;
    first.supplyIds();
    world.client.network.pass(500);
    fill(first);
    expect(transmitted(world, except(0))).toEqual([0, 0]);
    const other = through(1, world.client.path(world.device, 4444));
    expect(first.addPath(other, world.now())).toBe(true);
    expect(transmitted(world, except(0))).toEqual([0, 1]);
  });

  it('costs a connection that ends nothing: it is forgotten', () => {
    const world = scene();
    const [first] = world.connections;
    fill(first);
    transmitted(world, except(0));
    first.close(0, '', world.now());
    transmitted(world, except(0));
    world.client.network.pass(60_000);
    expect(transmitted(world, () => 100)).toEqual([0, 0]);
    expect(world.client.endpoint.stats.connections).toBe(1);
  });
});

describe('packets that a stalled socket keeps', () => {
  it('leave the rest to another connection, which is asked again as soon as some of its own are back', () => {
    const world = scene();
    const { network, endpoint } = world.client;
    const more = Array.from({ length: 4 }, () => dial(world.client, world.device));
    expect(network.run(() => more.every(({ state }) => state === 'open'))).toBe(true);
    network.pass(500);
    for (const connection of [...world.connections, ...more]) fill(connection);
    const room = [endpoint.slots - 8, 0];
    const kept: PacketBatch['release'][] = [];
    const transmit = (): number[] =>
      transmitted(
        world,
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
    network.now += 10;
    expect(transmit()).toEqual([0, 0]);
    for (const release of kept.splice(0, 4)) release(0);
    expect(transmit()[1]).toBeGreaterThan(0);
  });
});
