/** Floods of handshakes: Retry, rates, the anti-amplification limit, connections above the limit. */
import { describe, expect, it } from 'vitest';
import { Core } from '../../../bindings/index.ts';
import { decodeInitiate, decodeRetry, decodeVersions, encodeInitiate, padded } from '../../../protocol/packet/index.ts';
import type { Path } from '../../../protocol/path.ts';
import { dial, EndpointFixture, type PolledEndpoint, pair } from '../../support/fixture/endpoints.ts';
import { path, responder, route, strangers, webSocket } from './handmade.ts';

const { crypto, key, initiate, carry } = strangers(99);

describe('Retry', () => {
  it('is sent above the threshold and honoured once per attempt, and then the handshake continues', () => {
    const { network, client, device } = pair(1, { device: { limits: { halfOpen: 64, retryAbove: 0, connections: 8 } } });
    const connection = dial(client, device);
    expect(network.run(() => connection.state === 'open')).toBe(true);
    const types = network.sent.map(({ bytes }) => bytes[0]);
    expect(types.slice(0, 4)).toEqual([0x80, 0x81, 0x80, 0x82]);
    const [first, second] = network.sent.filter(({ bytes }) => bytes[0] === 0x80).map(({ bytes }) => decodeInitiate(bytes)!);
    expect(second!.message).toEqual(first!.message);
    expect(second!.source).toEqual(first!.source);
    expect([first!.token.length, second!.token.length]).toEqual([0, 20]);
    expect(device.endpoint.stats.retriesSent).toBe(1);
  });

  it('works for many clients at once, over a link with loss and duplicates', { tags: ['slow'] }, () => {
    const network = new EndpointFixture(2, { loss: 0.1, duplicate: 0.1, reorder: 1, reorderDelay: 30 });
    const device = network.device({ limits: { halfOpen: 64, retryAbove: 2, connections: 32 } });
    const clients = Array.from({ length: 12 }, () => network.client());
    const connections = clients.map((client) => dial(client, device, { deadline: network.now + 60_000 }));
    expect(network.run(() => connections.every(({ state }) => state === 'open'))).toBe(true);
    expect(device.endpoint.stats.retriesSent).toBeGreaterThan(3);
  });

  it('is dropped while 1,024 answers are queued; a client that repeats is answered when they have left', { tags: ['slow'] }, () => {
    const { endpoint, drain } = responder({ retryAbove: 0 });
    for (let i = 0; i < 1_000; i++) endpoint.receive(initiate(crypto.randomBytes(8)), path(`10.1.${i >> 4}.1`, i), 0);
    for (let i = 0; i < 100; i++) endpoint.receive(initiate(crypto.randomBytes(8)), path('10.2.0.1', i), 0);
    const honest = initiate(crypto.randomBytes(8));
    endpoint.receive(honest, path('10.1.0.2', 1), 0);
    expect(endpoint.stats).toMatchObject({ retriesSent: 1_024, limited: 77 });
    expect(drain(0)).toHaveLength(1_024);
    endpoint.receive(honest, path('10.1.0.2', 1), 500);
    expect(drain(500).map((bytes) => bytes[0])).toEqual([0x81]);
  });

  it('has a token that is valid only for its address, port and source id, and for 120 s', () => {
    const { endpoint, drain } = responder({ retryAbove: 0 });
    const source = crypto.randomBytes(8);
    const send = (token: Uint8Array, path: Path, now: number, from = source) => {
      endpoint.receive(initiate(from, token), path, now);
      return drain(now).map((bytes) => bytes[0]);
    };
    endpoint.receive(initiate(source), path('10.1.0.1', 1000), 5000);
    const token = decodeRetry(drain(5000)[0]!)!.token;
    expect(send(token, path('10.1.0.2', 1000), 5001)).toEqual([0x81]);
    expect(send(token, path('10.1.0.1', 1001), 5001)).toEqual([0x81]);
    expect(send(token, path('10.1.0.1', 1000), 5001, crypto.randomBytes(8))).toEqual([0x81]);
    expect(send(token.with(7, token[7]! ^ 1), path('10.1.0.1', 1000), 5001)).toEqual([0x81]);
    expect(send(token.subarray(1), path('10.1.0.1', 1000), 5001)).toEqual([0x81]);
    expect(send(token, path('10.1.0.1', 1000), 5000 + 121_000)).toEqual([0x81]);
    expect(send(token, path('10.1.0.1', 1000), 5000 + 119_000)).toEqual([0x82]);
    // The first use of this token, later than above: the previous secret is still valid.
    const later = responder({ retryAbove: 0 });
    later.endpoint.receive(initiate(source), path('10.1.0.1', 1000), 119_000);
    const old = decodeRetry(later.drain(119_000)[0]!)!.token;
    later.endpoint.receive(initiate(source, old), path('10.1.0.1', 1000), 235_000);
    expect(later.drain(235_000).map((bytes) => bytes[0])).toEqual([0x82]);
  });

  it('is followed by five handshakes a second per address or /64', { tags: ['slow'] }, () => {
    for (const [addresses, most] of [
      [(i: number) => [`10.1.0.1`, i], 5],
      [(i: number) => [`2001:db8:1:2::${i.toString(16)}`, 7], 5],
      [(i: number) => [`10.1.0.${i}`, 7], 20],
    ] as const) {
      const { endpoint, drain } = responder({ retryAbove: 0 });
      const responded = (now: number) => {
        let count = 0;
        for (let i = 1; i <= 20; i++) {
          const [address, port] = addresses(i) as [string, number];
          const source = crypto.randomBytes(8);
          endpoint.receive(initiate(source), path(address, port), now);
          const token = decodeRetry(drain(now)[0]!)!.token;
          endpoint.receive(initiate(source, token), path(address, port), now);
          count += drain(now).filter((bytes) => bytes[0] === 0x82).length;
        }
        return count;
      };
      expect(responded(10_000)).toBe(most);
      expect(responded(10_400)).toBe(most === 5 ? 2 : 20);
    }
  });

  it('is sent to other addresses during a flood from one, whose packets are dropped unread beyond its rate', () => {
    const { endpoint, drain } = responder({ retryAbove: 0 });
    const forged = initiate(crypto.randomBytes(8));
    forged[20]! ^= 1;
    for (let i = 0; i < 10_000; i++) endpoint.receive(forged, path('10.1.0.1', i), 0);
    expect(endpoint.stats).toMatchObject({ badMac: 520, limited: 9_480 });
    endpoint.receive(initiate(crypto.randomBytes(8)), path('10.1.0.2', 1), 0);
    expect(drain(0).map((bytes) => bytes[0])).toEqual([0x81]);
  });

  it('is not affected when the bytes of a received Initiate are overwritten: its repeat gets the same Respond', () => {
    const { endpoint, drain } = responder({});
    const first = initiate(crypto.randomBytes(8));
    const lent = Buffer.from(first);
    endpoint.receive(lent, path('10.1.0.1', 1), 0);
    lent.fill(0xee);
    const responds = drain(0);
    endpoint.receive(first, path('10.1.0.1', 1), 500);
    expect(responds.map((bytes) => bytes[0])).toEqual([0x82]);
    expect(drain(500)).toEqual(responds);
  });

  it('does not apply to relayed handshakes, and direct ones of strangers do not keep them out', () => {
    const { endpoint } = responder({ retryAbove: 1, halfOpen: 4 });
    for (let i = 0; i < 8; i++) endpoint.receive(initiate(crypto.randomBytes(8)), path(`10.1.0.${i}`, 1), 0);
    for (let i = 0; i < 4; i++) expect(endpoint.accept(initiate(crypto.randomBytes(8)), route(i), 0)[0]).toBe(0x82);
    expect(() => endpoint.accept(initiate(crypto.randomBytes(8)), route(4), 0)).toThrow(
      expect.objectContaining({ name: 'RemoteError', code: 'TOO_MANY_REQUESTS' }),
    );
    endpoint.handleTimeout(10_000);
    expect(endpoint.accept(initiate(crypto.randomBytes(8)), route(5), 10_000)[0]).toBe(0x82);
  });
});

describe('before the address is validated', () => {
  it('at most three times the received bytes are sent, whatever arrives', () => {
    const { endpoint, drain } = responder({ retryAbove: 16 });
    const source = crypto.randomBytes(8);
    const datagram = initiate(source);
    let received = 0;
    let sent = 0;
    for (let i = 0; i < 20; i++) {
      endpoint.receive(datagram, path('10.1.0.1', 1), i);
      received += datagram.length;
      sent += drain(i).reduce((total, bytes) => total + bytes.length, 0);
      expect(sent).toBeLessThanOrEqual(3 * received);
    }
    expect(sent).toBeGreaterThan(0);
    expect(endpoint.stats.halfOpen).toBe(1);
  });

  it('a bare Initiate shorter than 1,200 bytes is dropped, one over a connection is not', () => {
    const { endpoint, drain } = responder({ retryAbove: 16 });
    const short = initiate(crypto.randomBytes(8), undefined, false);
    endpoint.receive(short, path('10.1.0.1', 1), 0);
    endpoint.receive(padded(short).subarray(0, 1199), path('10.1.0.1', 1), 0);
    expect(drain(0)).toEqual([]);
    endpoint.receive(short, { ...path('10.1.0.1', 1), kind: 'websocket', key: 'websocket:1' }, 0);
    expect(drain(0).map((bytes) => bytes[0])).toEqual([0x82]);
  });

  it('the limit holds over a whole attempt on a link that loses every answer', () => {
    const { network, client, device } = pair(3);
    network.tap = ({ from }) => from === client;
    dial(client, device);
    network.pass(20_000);
    const total = (node: PolledEndpoint) =>
      network.sent.filter(({ from }) => from === node).reduce((sum, { bytes }) => sum + bytes.length, 0);
    expect(total(device)).toBeLessThanOrEqual(3 * total(client));
    expect(total(device)).toBeGreaterThan(0);
  });

  it('an unknown version is answered with Versions, but only with a valid mac1', () => {
    const { endpoint, drain } = responder({ retryAbove: 16 });
    const source = crypto.randomBytes(8);
    for (const [version, suite] of [
      [2, 1],
      [1, 9],
      [255, 255],
    ]) {
      const fields = { version: version!, suite: suite!, source, token: new Uint8Array(0), message: crypto.randomBytes(200) };
      endpoint.receive(padded(encodeInitiate(crypto, key, fields)), path('10.1.0.1', 1), 0);
      const [answer, ...more] = drain(0);
      expect(decodeVersions(answer!)).toEqual({ destination: source, versions: Uint8Array.of(1), suites: Uint8Array.of(1) });
      expect(more).toEqual([]);
      endpoint.receive(padded(encodeInitiate(crypto, crypto.randomBytes(32), fields)), path('10.1.0.1', 1), 0);
      expect(drain(0)).toEqual([]);
    }
    expect(endpoint.stats).toMatchObject({ versionsSent: 3, badMac: 3, halfOpen: 0 });
  });

  it('a client that receives only unknown versions fails with NOT_IMPLEMENTED', () => {
    const { network, client, device } = pair(4);
    network.tap = (datagram) => {
      const initiated = decodeInitiate(datagram.bytes);
      if (initiated === null) return true;
      network.deliver({ from: device, to: client, bytes: Uint8Array.of(0x85, ...initiated.source, 1, 7, 1, 1) });
      return false;
    };
    dial(client, device);
    network.pass(1000);
    expect(client.find('failed')).toMatchObject({ error: { code: 'NOT_IMPLEMENTED' } });
  });
});

describe('a connection above the limit', () => {
  it('gets its Respond and is then closed with BUSY, unseen by the application', () => {
    const network = new EndpointFixture(5);
    const device = network.device({ limits: { halfOpen: 64, retryAbove: 16, connections: 1 } });
    const clients = [network.client(), network.client()];
    for (const client of clients) {
      dial(client, device);
      network.pass(500);
    }
    expect(device.accepted).toHaveLength(1);
    expect(clients[1]!.kinds()).toEqual(['closed']);
    expect(clients[1]!.find('closed')).toMatchObject({ code: 0x1001, error: { name: 'RemoteError', code: 'DEVICE_INTERNAL_ERROR' } });
    network.pass(10_000);
    expect(device.endpoint.stats).toMatchObject({ refused: 1, connections: 1 });
    device.accepted[0]!.close(0, '', network.now);
    network.pass(10_000);
    dial(clients[1]!, device);
    network.pass(500);
    expect(device.accepted).toHaveLength(2);
  });

  it('awaits the acknowledgement of a crowded device until the deadline of the handshake, then frees its slot', () => {
    const network = new EndpointFixture(5);
    const device = network.device({ limits: { halfOpen: 64, retryAbove: 16, connections: 0 } });
    const client = network.client();
    const began = network.now;
    let isSilent = true;
    network.tap = ({ bytes, to }) => !isSilent || to === client || bytes[0] === 0x80;
    const connection = dial(client, device, { deadline: began + 2_000 });
    network.pass(1_999);
    expect([client.find('opened'), connection.state]).toEqual([undefined, 'open']);
    network.pass(1);
    const timeout = { name: 'RemoteError', code: 'TIMEOUT', message: 'the peer does not answer' };
    expect(client.find('closed')).toMatchObject({ error: timeout });
    client.events.length = 0;
    isSilent = false;
    network.pass(10_000);
    expect(client.events).toEqual([]);
    expect(client.endpoint.stats.connections).toBe(0);
    expect(client.endpoint.nextTimeout()).toBe(Number.POSITIVE_INFINITY);
  });

  it('opens when the acknowledgement of a crowded device comes with the deadline', () => {
    const opensAfter = (allowed: number): number => {
      const network = new EndpointFixture(5);
      const device = network.device({ limits: { halfOpen: 64, retryAbove: 16, connections: 1 } });
      const [other, client] = [network.client(), network.client()];
      network.tap = ({ from, bytes }) => from !== other || bytes[0] !== 0x83;
      dial(other, device);
      network.pass(100);
      const began = network.now;
      dial(client, device, { deadline: began + allowed });
      expect(network.run(() => client.events.length > 0)).toBe(true);
      expect(client.kinds()).toEqual(['opened']);
      return network.now - began;
    };
    const least = opensAfter(10_000);
    expect(least).toBeGreaterThanOrEqual(40);
    expect(opensAfter(least)).toBe(least);
  });

  it('takes the slot of one that is closing', () => {
    const network = new EndpointFixture(5);
    const device = network.device({ limits: { halfOpen: 64, retryAbove: 16, connections: 2 } });
    for (let i = 0; i < 2; i++) dial(network.client(), device);
    network.pass(500);
    device.accepted[0]!.close(0, '', network.now);
    const connection = dial(network.client(), device);
    expect(network.run(() => device.accepted.length === 3)).toBe(true);
    expect(connection.state).toBe('open');
    expect(device.endpoint.stats).toMatchObject({ refused: 0 });
  });

  it('finds room in a core that is full of closing connections', () => {
    const network = new EndpointFixture(6, { delay: 50 });
    const core = Core.create({ connections: 3, memory: 8 << 20 });
    const device = network.device({ core, limits: { halfOpen: 64, retryAbove: 16, connections: 1 } });
    const clients = Array.from({ length: 4 }, () => network.client());
    for (const client of clients.slice(0, 3)) dial(client, device);
    expect(network.run(() => device.endpoint.stats.refused === 2)).toBe(true);
    device.accepted[0]!.close(0, '', network.now);
    const connection = dial(clients[3]!, device);
    expect(network.run(() => device.accepted.length === 2)).toBe(true);
    expect(connection.state).toBe('open');
    expect(core.stats().connections).toBe(3);
  });

  it('is reset when the core has no room for it', () => {
    const network = new EndpointFixture(6);
    const core = Core.create({ connections: 3, memory: 8 << 20 });
    const device = network.device({ core });
    const clients = Array.from({ length: 6 }, () => network.client());
    for (const client of clients) dial(client, device);
    network.onEvent = (_, of, event) => {
      if (event.kind === 'opened') of.messages.send(Uint8Array.of(1));
    };
    network.pass(5000);
    const lost = clients.filter((client) => client.find('closed')?.error?.message.includes('lost the state'));
    expect([device.accepted.length, lost.length]).toEqual([3, 3]);
  });
});

describe('handshakes over WebSockets', () => {
  it('need no padding, and have a validated address: no Retry and no anti-amplification limit', () => {
    const { endpoint, drain } = responder({ retryAbove: 0 });
    const bare = initiate(crypto.randomBytes(8), undefined, false);
    endpoint.receive(bare, path('10.1.0.1', 1), 0);
    expect([drain(0), endpoint.stats.malformed]).toEqual([[], 1]);
    for (let repeat = 0; repeat < 4; repeat++) endpoint.receive(bare, webSocket(1, '10.1.0.1'), 0);
    expect(drain(0).map((bytes) => bytes[0])).toEqual([0x82, 0x82, 0x82, 0x82]);
  });

  it('have the rate limits of their address under load, over all its WebSockets', () => {
    const { endpoint, drain } = responder({ retryAbove: 0, halfOpen: 1_000 });
    for (let i = 0; i < 40; i++) endpoint.receive(initiate(crypto.randomBytes(8), undefined, false), webSocket(i, '10.1.0.1'), 0);
    expect([drain(0).length, endpoint.stats.limited]).toEqual([5, 35]);
    endpoint.receive(initiate(crypto.randomBytes(8), undefined, false), webSocket(99, '10.1.0.2'), 0);
    expect(drain(0).length).toBe(1);
    // Above 20 a second of one address, and above the shared rate, an Initiate is dropped undecoded.
    for (let i = 0; i < 600; i++) endpoint.receive(Uint8Array.of(0x80, i), webSocket(1, '10.1.0.3'), 0);
    expect(endpoint.stats.malformed).toBeLessThan(600);
  });

  it('are evicted for relayed ones, as those over UDP are', () => {
    const { endpoint, drain } = responder({ halfOpen: 4, retryAbove: 16 });
    for (let i = 0; i < 4; i++) endpoint.receive(initiate(crypto.randomBytes(8), undefined, false), webSocket(i, `10.1.0.${i}`), 0);
    for (let i = 0; i < 4; i++) expect(carry(endpoint, route(i), 0)).not.toBeNull();
    expect([drain(0).length, carry(endpoint, route(9), 0)]).toEqual([4, null]);
  });
});
