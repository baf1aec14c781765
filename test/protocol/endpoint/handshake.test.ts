/** Handshakes between two endpoints: completion, disturbances, authentication of the responder, closing. */
import { describe, expect, it } from 'vitest';
import { fingerprint } from '../../../protocol/identity/index.ts';
import { decodeInitiate, encodeVersions } from '../../../protocol/packet/index.ts';
import { nobleHost } from '../../support/crypto.ts';
import { dial, type PolledEndpoint, pair } from '../../support/fixture/endpoints.ts';
import { seeds } from '../../support/tiered.ts';

describe('handshake', () => {
  it("takes one round trip until the client may send, and gives each end the peer's key", () => {
    const { network, client, device } = pair(1);
    const connection = dial(client, device);
    const start = network.now;
    expect(network.run(() => connection.state === 'open')).toBe(true);
    expect(network.now - start).toBe(20);
    expect(network.run(() => device.accepted.length === 1)).toBe(true);
    expect(network.now - start).toBe(30);
    const [accepted] = device.accepted;
    expect(client.kinds(connection)).toEqual(['opened']);
    expect(connection.peer.fingerprint).toBe(fingerprintOf(device));
    expect(accepted!.peer.fingerprint).toBe(fingerprintOf(client));
    expect(connection.peer.handshakeHash).toEqual(accepted!.peer.handshakeHash);
    expect(connection.peer.info).toEqual({ ProductId: 'p', DeviceId: 'd' });
    expect([connection.peer.verified, accepted!.peer.verified]).toEqual(['none', 'none']);
    expect(device.endpoint.stats).toMatchObject({ halfOpen: 0, halfOpenLost: 0, connections: 1 });
  });

  it('completes between ends with different crypto', () => {
    const { network, client, device } = pair(1, { client: { crypto: nobleHost(7), identity: nobleHost(8).generateKey() } });
    const connection = dial(client, device, { pin: fingerprintOf(device) });
    expect(network.run(() => device.accepted.length === 1)).toBe(true);
    expect([connection.peer.verified, device.accepted[0]!.peer.fingerprint]).toEqual(['pinned', fingerprintOf(client)]);
  });

  it('carries messages both ways, the first in the same burst as the Complete', () => {
    const { network, client, device } = pair(2);
    const connection = dial(client, device);
    network.onEvent = (node, of, event) => {
      if (event.kind === 'opened') of.messages.send(text('ping'));
      if (event.kind === 'message' && node === device) of.messages.send(text('pong'));
    };
    const start = network.now;
    expect(network.run(() => client.find('message') !== undefined)).toBe(true);
    expect(network.now - start).toBeLessThanOrEqual(45);
    expect(device.find('message')?.data).toEqual(text('ping'));
    expect(client.find('message')?.data).toEqual(text('pong'));
    connection.close(0, 'done', network.now);
    expect(network.run(() => client.endpoint.idle && device.endpoint.idle)).toBe(true);
    expect(client.find('closed')).toEqual({ kind: 'closed', error: null, code: 0, reason: 'done' });
    expect(device.find('closed')).toMatchObject({ code: 0, reason: 'done', error: { code: 'CLOSED' } });
  });

  const links = [0, 0.05, 0.2].flatMap((loss) =>
    [0, 0.3].flatMap((duplicate) =>
      [0, 60].flatMap((reorderDelay) => [1, 25, 150].map((delay) => ({ loss, duplicate, reorder: 1, reorderDelay, delay }))),
    ),
  );
  const completes = (first: number, last: number) => (link: (typeof links)[number]) => {
    for (const seed of seeds(first, last)) {
      const { network, client, device } = pair(seed, { link });
      dial(client, device, { deadline: network.now + 120_000 });
      network.onEvent = (node, of, event) => {
        if (event.kind === 'opened') of.messages.send(text('hello'));
        if (event.kind === 'message' && node === device) of.messages.send(event.data);
      };
      const done = network.run(() => client.find('message') !== undefined, 120_000);
      expect(done, `seed ${seed}`).toBe(true);
      expect(device.accepted, `seed ${seed}`).toHaveLength(1);
      expect(client.find('message')?.data).toEqual(text('hello'));
    }
  };
  it.each(links)('completes with loss $loss, duplicates $duplicate, delay $delay and up to $reorderDelay more', completes(1, 1));

  it.each(links)(
    'completes for more seeds with loss $loss, duplicates $duplicate, delay $delay and up to $reorderDelay more',
    { tags: ['slow'] },
    completes(2, 16),
  );

  it('repeats the Initiate byte for byte with pauses that double up to 2 s, and gives up at the deadline', () => {
    for (const [firstTimeout, times] of [
      [500, [0, 500, 1500, 3500, 5500, 7500, 9500]],
      [250, [0, 250, 750, 1750, 3750, 5750, 7750, 9750]],
    ] as const) {
      const { network, client, device } = pair(3);
      const sent: [number, Uint8Array][] = [];
      const start = network.now;
      network.tap = ({ bytes }) => {
        sent.push([network.now - start, bytes]);
        return false;
      };
      const connection = dial(client, device, { firstTimeout, deadline: start + 10_000 });
      network.pass(25_000);
      expect(sent.map(([at]) => at)).toEqual(times);
      for (const [, bytes] of sent) {
        expect(bytes).toEqual(sent[0]![1]);
        expect(bytes).toHaveLength(1200);
      }
      expect(client.events).toMatchObject([[connection, { kind: 'failed', error: { code: 'TIMEOUT' } }]]);
      expect([connection.state, client.endpoint.idle, client.endpoint.nextTimeout()]).toEqual(['closed', true, Number.POSITIVE_INFINITY]);
    }
  });

  it('answers a repeated Initiate with the same Respond', () => {
    const { network, client, device } = pair(4);
    const responds: Uint8Array[] = [];
    network.tap = ({ from, bytes }) => {
      if (from === device) responds.push(bytes);
      return from === client;
    };
    dial(client, device);
    network.pass(8000);
    expect(responds.length).toBeGreaterThan(3);
    for (const bytes of responds) expect(bytes).toEqual(responds[0]);
    expect(device.endpoint.stats.halfOpen).toBe(1);
    network.pass(30_000);
    expect(device.endpoint.stats).toMatchObject({ halfOpen: 0 });
  });

  it('does not answer an Initiate for another name', () => {
    for (const name of ['device:p.e', 'device', 'station', 'device:p.d ']) {
      const { network, client, device } = pair(5);
      const connection = dial(client, device, { name });
      network.pass(25_000);
      expect(network.sent.filter(({ from }) => from === device)).toEqual([]);
      expect(device.endpoint.stats.badMac).toBeGreaterThan(3);
      expect(connection.state).toBe('closed');
    }
  });

  it('does not answer where no connections are accepted', () => {
    const { network, client, device } = pair(6, { device: { responder: () => [] } });
    dial(client, device);
    network.pass(5000);
    expect(network.sent.filter(({ from }) => from === device)).toEqual([]);
  });
});

describe('a handshake is not disturbed by', () => {
  function acceptsTheNextOne(first: number, last: number): void {
    for (const seed of seeds(first, last)) {
      const { network, client, device } = pair(seed);
      const damaged = new Set<number>();
      network.tap = ({ bytes }) => {
        const type = bytes[0]!;
        if (type < 0xc0 && !damaged.has(type)) {
          damaged.add(type);
          // Padding is not protected, so damage the packet itself.
          const length = type === 0x80 ? 62 : bytes.length;
          bytes[1 + ((seed * 37 + type) % (length - 1))]! ^= 1 << (seed % 8);
        }
        return true;
      };
      const connection = dial(client, device);
      network.onEvent = (_, of, event) => {
        if (event.kind === 'opened') of.messages.send(text('x'));
      };
      expect(
        network.run(() => device.find('message') !== undefined, 15_000),
        `seed ${seed}`,
      ).toBe(true);
      expect(connection.state).toBe('open');
      expect(damaged).toEqual(new Set([0x80, 0x82, 0x83]));
    }
  }

  it('a damaged Initiate, Respond or Complete: each is dropped, and the next one is accepted', { tags: ['slow'] }, () =>
    acceptsTheNextOne(1, 8),
  );

  it('damage at other places of an Initiate, Respond or Complete', { tags: ['slow'] }, () => acceptsTheNextOne(9, 300));

  /** A client that dials, whose Complete takes `delay` ms longer than its other packets. */
  function withLateComplete(delay: number) {
    const { network, client, device } = pair(7);
    network.tap = (datagram) => {
      if (datagram.bytes[0] !== 0x83) return true;
      network.deliver(datagram, delay);
      return false;
    };
    dial(client, device);
    return { network, device };
  }

  it('Data that overtakes the Complete: four packets of six are kept', () => {
    const { network, device } = withLateComplete(50);
    network.onEvent = (_, of, event) => {
      if (event.kind === 'opened') for (let i = 0; i < 6; i++) of.messages.send(new Uint8Array(1000));
    };
    expect(network.run(() => device.kinds().includes('message'))).toBe(true);
    expect(device.kinds().filter((kind) => kind === 'message')).toHaveLength(4);
    expect(device.endpoint.stats.limited).toBe(2);
  });

  it('Data that overtakes the Complete, which needs no retransmission', () => {
    const { network, device } = withLateComplete(80);
    network.onEvent = (_, of, event) => {
      if (event.kind === 'opened') for (let i = 0; i < 3; i++) of.messages.send(text(`early ${i}`));
    };
    const start = network.now;
    expect(network.run(() => device.kinds().filter((kind) => kind === 'message').length === 3)).toBe(true);
    expect(network.now - start).toBeLessThan(110);
  });

  it('more Data before the Complete than is kept: the rest is dropped and retransmitted', () => {
    const { network, device } = withLateComplete(80);
    network.onEvent = (_, of, event) => {
      if (event.kind === 'opened') for (let i = 0; i < 8; i++) of.messages.send(new Uint8Array(1_000).fill(i));
    };
    const messages = () => device.kinds().filter((kind) => kind === 'message').length;
    expect(network.run(() => messages() > 0)).toBe(true);
    expect(messages()).toBeLessThanOrEqual(4);
    expect(device.endpoint.stats.limited).toBeGreaterThan(0);
    expect(network.run(() => messages() === 8)).toBe(true);
  });

  it('a lost Complete: packets that waited for the next one give no round-trip sample', () => {
    const { network, client, device } = pair(7);
    let completes = 0;
    let data = 0;
    // Only the second Complete and the first Data packet before it arrive: the ACK covers both, and no packet sent
    // since.
    network.tap = ({ from, bytes }) => {
      if (from === device || completes > 2) return true;
      return bytes[0] === 0x83 ? ++completes > 1 : bytes[0]! < 0xc0 || ++data === 1;
    };
    const connection = dial(client, device);
    network.onEvent = (_, of, event) => {
      if (event.kind === 'opened') of.messages.send(text('early'));
    };
    expect(network.run(() => device.find('message') !== undefined)).toBe(true);
    completes = 3;
    network.pass(1000);
    expect(data).toBeGreaterThan(1);
    expect(connection.stats()!.rtt).toBeCloseTo(20, 0);
  });

  it('a repeated Complete, which is only acknowledged', () => {
    const { network, client, device } = pair(8);
    network.tap = (datagram) => {
      if (datagram.bytes[0] === 0x83) {
        network.deliver(datagram);
        network.deliver(datagram, 500);
      }
      return true;
    };
    const connection = dial(client, device);
    network.pass(2000);
    expect(device.accepted).toHaveLength(1);
    expect([connection.state, device.accepted[0]!.state]).toEqual(['open', 'open']);
    expect(device.endpoint.stats.badHandshake).toBe(0);
  });

  it('a Versions packet that lists the offered version', () => {
    const { network, client, device } = pair(9);
    network.tap = (datagram) => {
      const initiate = decodeInitiate(datagram.bytes);
      if (initiate === null) return true;
      const bytes = encodeVersions({ destination: initiate.source, versions: Uint8Array.of(9, 1), suites: Uint8Array.of(1) });
      network.deliver({ from: device, to: client, bytes }, 1);
      return true;
    };
    const connection = dial(client, device);
    expect(network.run(() => connection.state === 'open')).toBe(true);
  });

  it('a Retry from an attacker that does not know the source id', () => {
    const { network, client, device } = pair(10);
    network.tap = (datagram) => {
      if (datagram.bytes[0] === 0x80)
        network.deliver({ from: device, to: client, bytes: Uint8Array.of(0x81, ...new Uint8Array(8), 1, 2, 3) }, 1);
      return true;
    };
    const connection = dial(client, device);
    expect(network.run(() => connection.state === 'open')).toBe(true);
    expect(network.sent.filter(({ bytes }) => bytes[0] === 0x80)).toHaveLength(1);
  });
});

describe('the responder', () => {
  it('is pinned when its fingerprint is as expected', () => {
    const { network, client, device } = pair(11);
    const connection = dial(client, device, { pin: fingerprintOf(device), expect: { ProductId: 'p', DeviceId: 'd' } });
    expect(network.run(() => connection.state === 'open')).toBe(true);
    expect(connection.peer.verified).toBe('pinned');
  });

  it('with another fingerprint fails the connection before any payload is sent', () => {
    const { network, client, device } = pair(12);
    const connection = dial(client, device, { pin: fingerprintOf(client) });
    network.pass(20_000);
    expect(client.events).toMatchObject([[connection, { kind: 'failed', error: { code: 'FINGERPRINT_MISMATCH' } }]]);
    expect(network.sent.filter(({ from }) => from === client).map(({ bytes }) => bytes[0])).toEqual([0x80]);
    expect(connection.state).toBe('closed');
    expect(device.accepted).toEqual([]);
  });

  it.each([
    [{ ProductId: 'q', DeviceId: 'd' }, 'WRONG_PRODUCT_ID'],
    [{ ProductId: 'p', DeviceId: 'e' }, 'WRONG_DEVICE_ID'],
    [{ Missing: 'x' }, 'BAD_RESPONSE'],
  ])('fails the connection when %j is expected', (expected, code) => {
    const { network, client, device } = pair(13);
    const connection = dial(client, device, { expect: expected as Record<string, string> });
    network.pass(3000);
    expect(client.events).toMatchObject([[connection, { kind: 'failed', error: { code } }]]);
    expect(network.sent.filter(({ from }) => from === client)).toHaveLength(1);
  });

  it('cannot be pinned to an invalid fingerprint, which leaves no trace', () => {
    const { client, device } = pair(14);
    expect(() => dial(client, device, { pin: 'abc' })).toThrow(expect.objectContaining({ name: 'LocalError', code: 'INVALID_ARGUMENT' }));
    expect(client.endpoint.idle).toBe(true);
    expect(client.endpoint.nextTimeout()).toBe(Number.POSITIVE_INFINITY);
  });

  it('learns the key that the client dials with', () => {
    const { network, client, device } = pair(15);
    const identity = device.config.crypto.generateKey();
    dial(client, device, { identity });
    expect(network.run(() => device.accepted.length === 1)).toBe(true);
    expect(device.accepted[0]!.peer.fingerprint).toBe(fingerprint(identity.publicKey, device.config.crypto));
  });
});

describe('closing', () => {
  it('ends a connection that is being dialled at once and silently', () => {
    const { network, client, device } = pair(16);
    const connection = dial(client, device);
    connection.close(0, 'changed my mind', network.now);
    network.pass(20_000);
    expect(client.kinds(connection)).toEqual(['closed']);
    expect(network.sent.filter(({ from }) => from === client).length).toBeLessThanOrEqual(1);
    expect([client.endpoint.idle, device.accepted.length]).toEqual([true, 0]);
  });

  it('an endpoint closes all connections and accepts no more', () => {
    const { network, client, device } = pair(17);
    dial(client, device);
    network.run(() => device.accepted.length === 1);
    device.endpoint.close(network.now);
    expect(network.run(() => client.find('closed') !== undefined, 100)).toBe(true);
    expect(client.find('closed')).toMatchObject({ code: 0x1002, error: { code: 'CLOSED' } });
    const again = dial(client, device);
    network.pass(25_000);
    expect([device.endpoint.idle, again.state]).toEqual([true, 'closed']);
    expect(() => device.endpoint.connect({ path: device.path(client), name: 'x', deadline: 1 }, 0)).toThrow(
      expect.objectContaining({ code: 'INVALID_STATE' }),
    );
  });
});

describe('a core that traps', () => {
  it('fails every connection with CORE_FAILED and throws nothing', () => {
    const { network, client, device } = pair(18);
    const connection = dial(client, device);
    network.run(() => device.accepted.length === 1);
    expect(() => client.config.core.failForTest()).toThrow(expect.objectContaining({ code: 'CORE_FAILED' }));
    expect(() => connection.messages.send(text('x'))).toThrow(expect.objectContaining({ code: 'CORE_FAILED' }));
    expect(connection.nextEvent()).toBeNull();
    connection.close(0, '', network.now);
    network.pass(1000);
    expect(client.kinds(connection)).toEqual(['opened', 'closed']);
    expect(client.find('closed')).toMatchObject({ error: { code: 'CORE_FAILED' } });
    expect(client.endpointEvents.filter(({ kind }) => kind === 'failed')).toHaveLength(1);
    expect([client.endpoint.idle, connection.state]).toEqual([true, 'closed']);
    client.endpoint.receive(Uint8Array.of(0xc0, ...new Uint8Array(40)), client.path(device), network.now);
    expect(() => dial(client, device)).toThrow(expect.objectContaining({ code: 'CORE_FAILED' }));
    expect(() => connection.messages.send(text('x'))).toThrow(expect.objectContaining({ code: 'CLOSED' }));
  });
});

function fingerprintOf(node: PolledEndpoint): string {
  return fingerprint(node.config.identity.publicKey, node.config.crypto);
}

function text(value: string): Uint8Array {
  return new TextEncoder().encode(value);
}
