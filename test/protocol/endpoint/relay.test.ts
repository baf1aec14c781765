/** A handshake relayed by the base station, then data on a route through it. */
import { describe, expect, it } from 'vitest';
import { encodeReset, padded } from '../../../protocol/packet/index.ts';
import { dial, EndpointFixture } from '../../support/fixture/endpoints.ts';
import { CLIENT_ROUTE, CLIENT_TOKEN, DEVICE_ROUTE, DEVICE_TOKEN, setup } from '../../support/fixture/relayed.ts';

describe('a relayed handshake', () => {
  it('does not begin on a route: an Initiate there is always dropped', () => {
    const relayed = setup();
    const { connection, device, network, station } = relayed;
    relayed.introduce();
    const before = { ...device.endpoint.stats };
    for (let count = 0; count < 100; count++) {
      const packet = padded(connection.initiate!);
      packet.set([count], 7);
      const datagram = Uint8Array.of(0x88, ...DEVICE_ROUTE, ...packet);
      device.endpoint.receive(datagram, device.path(station), network.now);
    }
    expect(device.endpoint.stats).toMatchObject({ malformed: before.malformed + 100, halfOpen: before.halfOpen, badMac: before.badMac });
  });

  it('opens a connection whose packets all have a Route header', () => {
    const relayed = setup();
    const { network, client, device, connection, clientPath, devicePath } = relayed;
    relayed.introduce();
    expect(connection.state).toBe('open');
    connection.messages.send(Uint8Array.of(42));
    expect(network.run(() => device.find('message') !== undefined, 200)).toBe(true);
    expect(device.find('message')?.data).toEqual(Uint8Array.of(42));
    expect([connection.path, device.accepted[0]!.path]).toEqual([clientPath, devicePath]);
    const fromClient = network.sent.filter(({ from }) => from === client).map(({ bytes }) => bytes);
    expect(fromClient.length).toBeGreaterThan(0);
    for (const bytes of fromClient) expect([...bytes.subarray(0, 9)]).toEqual([0x88, ...CLIENT_ROUTE]);
    expect(connection.peer.info).toEqual({ ProductId: 'p', DeviceId: 'd' });
  });

  it('answers the same Initiate with the same Respond', () => {
    const relayed = setup();
    const { connection, device, devicePath, network } = relayed;
    const first = device.endpoint.accept(connection.initiate!, devicePath, network.now);
    expect(device.endpoint.accept(connection.initiate!, devicePath, network.now)).toEqual(first);
    expect(device.endpoint.accept(padded(connection.initiate!), devicePath, network.now)).toEqual(first);
    expect(device.endpoint.stats.halfOpen).toBe(1);
  });

  it('is refused with an error to the base station', () => {
    const { connection, device, devicePath, network } = setup();
    const initiate = connection.initiate!;
    const cases: [Uint8Array, string][] = [
      [new Uint8Array(0), 'PARSE'],
      [initiate.subarray(0, 40), 'PARSE'],
      [initiate.with(20, initiate[20]! ^ 1), 'NOT_FOUND'],
    ];
    for (const [bytes, code] of cases) {
      expect(() => device.endpoint.accept(bytes, devicePath, network.now)).toThrow(expect.objectContaining({ name: 'RemoteError', code }));
    }
    device.endpoint.close(network.now);
    expect(() => device.endpoint.accept(initiate, devicePath, network.now)).toThrow(expect.objectContaining({ code: 'INVALID_STATE' }));
  });

  it('fails at once when the answer is invalid, and sends nothing', { tags: ['slow'] }, () => {
    for (const damage of [
      (bytes: Uint8Array) => bytes.with(40, bytes[40]! ^ 1),
      () => new Uint8Array(5),
      (b: Uint8Array) => b.with(3, b[3]! ^ 1),
    ]) {
      const relayed = setup();
      const respond = relayed.device.endpoint.accept(relayed.connection.initiate!, relayed.devicePath, relayed.network.now);
      relayed.client.endpoint.respond(relayed.connection, damage(respond), relayed.clientPath, relayed.network.now);
      relayed.network.pass(100);
      expect(relayed.client.find('failed')).toMatchObject({ error: { code: 'BAD_RESPONSE' } });
      expect(relayed.network.sent).toEqual([]);
    }
  });

  it('checks the pin before anything is sent', () => {
    const relayed = setup({ pin: 'ab'.repeat(32) });
    relayed.introduce();
    relayed.network.pass(100);
    expect(relayed.client.find('failed')).toMatchObject({ error: { code: 'FINGERPRINT_MISMATCH' } });
    expect(relayed.network.sent).toEqual([]);
  });

  it('times out when no answer comes, and ignores one that comes later', () => {
    const relayed = setup();
    const { network, client, connection } = relayed;
    network.pass(30_000);
    expect(client.find('failed')).toMatchObject({ error: { code: 'TIMEOUT' } });
    relayed.introduce();
    network.pass(100);
    expect([connection.state, client.endpoint.idle]).toEqual(['closed', true]);
  });
});

describe('the end of a route', () => {
  it('reported by the base station with its token ends the connection at both ends, and is ignored from elsewhere', {
    tags: ['slow'],
  }, () => {
    const relayed = setup();
    const { network, client, device, station } = relayed;
    relayed.introduce();
    network.pass(500);
    const toClient = encodeReset({ id: CLIENT_ROUTE, token: CLIENT_TOKEN });
    client.endpoint.receive(encodeReset({ id: CLIENT_ROUTE, token: DEVICE_TOKEN }), client.path(station), network.now);
    client.endpoint.receive(toClient, client.path(device), network.now);
    network.pass(10);
    expect(relayed.connection.state).toBe('open');
    client.endpoint.receive(toClient, client.path(station), network.now);
    device.endpoint.receive(encodeReset({ id: DEVICE_ROUTE, token: DEVICE_TOKEN }), device.path(station), network.now);
    network.pass(10);
    for (const node of [client, device]) {
      expect(node.find('closed')).toMatchObject({ code: 0x1004, error: { code: 'CLOSED', message: expect.stringContaining('route') } });
      expect(node.endpoint.idle).toBe(true);
    }
  });

  it('is not reported by an endpoint for an unknown route, which would reveal the token of any id', () => {
    const network = new EndpointFixture(1);
    const station = network.station();
    const other = network.client();
    station.endpoint.receive(Uint8Array.of(0x88, ...CLIENT_ROUTE, 0xc0, ...new Uint8Array(30)), station.path(other), 0);
    network.pass(1);
    expect(network.sent).toEqual([]);
  });

  it('a route id is valid only on its channel', () => {
    const relayed = setup();
    const { network, device, client } = relayed;
    relayed.introduce();
    network.pass(500);
    const before = device.endpoint.stats.unknownId;
    const packet = network.sent.findLast(({ to, bytes }) => to === device && bytes[0] === 0x88)!.bytes;
    device.endpoint.receive(packet, device.path(client), network.now);
    expect(device.endpoint.stats.unknownId).toBe(before + 1);
  });
});

describe('a route as one of several paths', () => {
  it('is left for a direct path, and its end then changes nothing else', () => {
    const relayed = setup();
    const { network, client, device, station, connection } = relayed;
    relayed.introduce();
    network.pass(500);
    const direct = client.path(device);
    connection.paths.keep(relayed.clientPath, 0, network.now);
    expect(connection.paths.migrate(direct, network.now)).toBe(true);
    network.pass(1000);
    expect([connection.path, device.accepted[0]!.path]).toEqual([direct, device.path(client)]);
    expect([client, device].map((node) => node.find('path')?.reason)).toEqual(['migrated', 'followed']);
    expect(connection.paths.all.length).toBe(2);
    connection.messages.send(Uint8Array.of(42));
    expect(network.run(() => device.find('message') !== undefined, 200)).toBe(true);
    expect(network.sent.findLast(({ from }) => from === client)!.bytes[0]! & ~0x20).toBe(0xc0);
    client.endpoint.receive(encodeReset({ id: CLIENT_ROUTE, token: CLIENT_TOKEN }), client.path(station), network.now);
    network.pass(100);
    expect([connection.state, connection.paths.all]).toEqual(['open', [direct]]);
  });

  it('is added to a direct connection without another handshake', () => {
    const { network, client, device, clientPath, devicePath } = setup();
    const connection = dial(client, device);
    network.pass(500);
    device.endpoint.offerRoute(connection.paths.remoteId(), devicePath, network.now);
    expect(connection.paths.add(clientPath, network.now)).toBe(true);
    network.pass(1000);
    expect(client.find('probed')).toMatchObject({ path: clientPath, answered: true });
    connection.paths.migrate(clientPath, network.now);
    network.pass(500);
    expect([connection.path, device.accepted[0]!.path]).toEqual([clientPath, devicePath]);
    device.accepted[0]!.messages.send(Uint8Array.of(44));
    expect(network.run(() => client.find('message') !== undefined, 200)).toBe(true);
  });

  it('becomes active again when the direct path goes silent', { tags: ['slow'] }, () => {
    const relayed = setup();
    const { network, client, device, connection } = relayed;
    relayed.introduce();
    network.pass(500);
    connection.paths.keep(relayed.clientPath, 5000, network.now);
    connection.paths.migrate(client.path(device), network.now);
    network.pass(1000);
    const carry = network.tap!;
    network.tap = (datagram) => (datagram.bytes[0] === 0x88 ? carry(datagram) : false);
    connection.messages.send(Uint8Array.of(43));
    expect(network.run(() => device.find('message') !== undefined, 5000)).toBe(true);
    expect([connection.path, device.accepted[0]!.path]).toEqual([relayed.clientPath, relayed.devicePath]);
  });
});
