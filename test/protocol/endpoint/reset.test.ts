/** Lost state: Reset by the token of a connection id or of a route id. */
import { describe, expect, it } from 'vitest';
import { Core } from '../../../bindings/index.ts';
import type { Connection } from '../../../protocol/connection/index.ts';
import { Endpoint } from '../../../protocol/endpoint/index.ts';
import { Resets } from '../../../protocol/endpoint/reset.ts';
import { encodeReset, RESET_LENGTH } from '../../../protocol/packet/index.ts';
import { dial, type EndpointFixture, type PolledEndpoint, pair } from '../../support/fixture/endpoints.ts';

const keepAlive = { interval: 25_000, retryInterval: 2000, maxRetries: 15 };

describe('a peer that lost its state', () => {
  it('is noticed at the next keep-alive, with the reason', () => {
    const { network, client, device } = connected(1, { keepAlive });
    network.pass(5000);
    restart(device);
    const start = network.now;
    expect(network.run(() => client.find('closed') !== undefined)).toBe(true);
    expect(network.now - start).toBeLessThanOrEqual(25_100);
    expect(client.find('closed')).toMatchObject({
      error: { name: 'RemoteError', code: 'CLOSED', message: expect.stringContaining('lost the state') },
    });
    expect(client.endpoint.idle).toBe(true);
    expect(device.endpoint.stats).toMatchObject({ resetsSent: 1, connections: 0 });
  });

  it('is noticed at once by a sender, and a new handshake works', { tags: ['slow'] }, () => {
    const { network, client, device, connection } = connected(2);
    restart(device);
    connection.messages.send(Uint8Array.of(1));
    expect(network.run(() => client.find('closed') !== undefined, 100)).toBe(true);
    const again = dial(client, device);
    expect(network.run(() => again.state === 'open', 100)).toBe(true);
  });

  it('is noticed once the ends have exchanged further ids, too', { tags: ['slow'] }, () => {
    const { network, client, device, connection } = connected(6);
    connection.paths.supplyIds();
    network.pass(1000);
    const id = remoteIdSeen(network, device, connection);
    // The core has zeros in place of the token from the handshake.
    client.endpoint.receive(encodeReset({ id, token: new Uint8Array(16) }), client.path(device), network.now);
    expect(connection.state).toBe('open');
    restart(device);
    connection.messages.send(Uint8Array.of(1));
    expect(network.run(() => client.find('closed') !== undefined, 100)).toBe(true);
  });

  it('answers with fewer bytes than it received, after every restart', () => {
    const { network, client, device, connection } = connected(3);
    for (let i = 0; i < 3; i++) restart(device);
    network.sent.length = 0;
    connection.messages.send(Uint8Array.of(1));
    network.pass(50);
    const [data, reset] = network.sent;
    expect([data!.from, reset!.from]).toEqual([client, device]);
    expect(reset!.bytes).toHaveLength(RESET_LENGTH);
    expect(reset!.bytes.length).toBeLessThan(data!.bytes.length);
    expect(reset!.bytes.subarray(1, 9)).toEqual(data!.bytes.subarray(1, 9));
  });

  it('stays silent with another reset secret, since the ids are not its own', () => {
    const { network, client, device, connection } = connected(4);
    restart(device, { resetSecret: new Uint8Array(32).fill(5) });
    connection.messages.send(Uint8Array.of(1));
    network.pass(3000);
    expect(connection.state).toBe('open');
    expect(device.endpoint.stats.resetsSent).toBe(0);
    expect(client.endpoint.stats.unknownId).toBe(0);
  });
});

describe('only the peer can reset a connection', () => {
  it('a Reset with a wrong token, or for another id, changes nothing', { tags: ['slow'] }, () => {
    const { network, client, device, connection } = connected(5);
    const id = remoteIdSeen(network, device, connection);
    const token = new Resets(device.config.crypto, device.config.resetSecret).token(id);
    const path = client.path(device);
    for (let bit = 0; bit < 128; bit++) {
      const wrong = token.slice();
      wrong[bit >> 3]! ^= 1 << (bit & 7);
      client.endpoint.receive(encodeReset({ id, token: wrong }), path, network.now);
    }
    client.endpoint.receive(encodeReset({ id: id.with(7, id[7]! ^ 1), token }), path, network.now);
    client.endpoint.receive(Uint8Array.of(...encodeReset({ id, token }), 0), path, network.now);
    network.pass(100);
    expect(connection.state).toBe('open');
    client.endpoint.receive(encodeReset({ id, token }), path, network.now);
    network.pass(1);
    expect(connection.state).toBe('closed');
  });

  it('a scanner without a valid id gets no answer, one with an old id 1,000 a second at most', () => {
    const { network, device } = connected(6);
    const path = device.path(device);
    const data = new Uint8Array(40).fill(0xc0);
    for (let i = 0; i < 3000; i++) {
      data.set(device.config.crypto.randomBytes(12), 1);
      device.endpoint.receive(data, path, network.now);
    }
    expect(device.endpoint.stats.resetsSent).toBe(0);
    const [sent] = network.sent.filter(({ to, bytes }) => to === device && bytes[0]! >= 0xc0);
    restart(device);
    for (let i = 0; i < 3000; i++) device.endpoint.receive(sent!.bytes, path, network.now);
    expect(device.endpoint.stats.resetsSent).toBe(1000);
    // A packet in the next second is answered.
    network.elapse(1_000);
    device.endpoint.receive(sent!.bytes, path, network.now);
    expect(device.endpoint.stats.resetsSent).toBe(1001);
  });

  it('a Reset is never answered', () => {
    const { network, client, device } = connected(7);
    network.sent.length = 0;
    const reset = encodeReset({ id: new Uint8Array(8).fill(3), token: new Uint8Array(16) });
    device.endpoint.receive(reset, device.path(client), network.now);
    network.pass(100);
    expect(network.sent).toEqual([]);
  });
});

function connected(
  seed: number,
  options: { keepAlive?: typeof keepAlive } = {},
): { network: EndpointFixture; client: PolledEndpoint; device: PolledEndpoint; connection: Connection } {
  const setup = pair(seed, { client: options, device: options });
  const connection = dial(setup.client, setup.device);
  setup.network.onEvent = (_, of, event) => {
    if (event.kind === 'opened') of.messages.send(Uint8Array.of(0));
  };
  expect(setup.network.run(() => setup.device.find('message') !== undefined)).toBe(true);
  setup.network.pass(200);
  return { ...setup, connection };
}

/** Restarts the node with the same identity and reset secret, as after a crash. */
function restart(node: PolledEndpoint, changes: Partial<PolledEndpoint['config']> = {}): void {
  const core = Core.create({ connections: 8, memory: 8 << 20 });
  node.endpoint = new Endpoint({ ...node.config, core, ...changes });
}

/** Returns the id in the client's packets to the device. */
function remoteIdSeen(network: EndpointFixture, device: PolledEndpoint, connection: Connection): Uint8Array {
  connection.messages.send(Uint8Array.of(1));
  network.pass(100);
  return network.sent.findLast(({ to, bytes }) => to === device && bytes[0]! >= 0xc0)!.bytes.slice(1, 9);
}
