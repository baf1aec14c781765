/** The table of half-open handshakes: when entries end, and which make way for new ones. */
import { describe, expect, it } from 'vitest';
import { decodeRetry } from '../../../protocol/packet/index.ts';
import type { Path } from '../../../protocol/path.ts';
import { dial, pair } from '../../support/fixture/endpoints.ts';
import { dataFor, path, responder, route, strangers } from './handmade.ts';

const { crypto, initiate, carry, knock } = strangers(99);

describe('half-open handshakes', () => {
  it('are given up after 10 s, and their ids with them', { tags: ['slow'] }, () => {
    const { endpoint } = responder({ retryAbove: 64 });
    for (let i = 0; i < 10; i++) endpoint.receive(initiate(crypto.randomBytes(8)), path('10.1.0.1', i), i * 100);
    expect(endpoint.stats.halfOpen).toBe(10);
    expect(endpoint.nextTimeout()).toBe(10_000);
    endpoint.handleTimeout(10_450);
    expect(endpoint.stats.halfOpen).toBe(5);
    endpoint.handleTimeout(11_000);
    expect(endpoint.stats).toMatchObject({ halfOpen: 0, halfOpenLost: 10 });
    expect(endpoint.nextTimeout()).toBe(Number.POSITIVE_INFINITY);
  });

  it('are evicted when the table is full, those of addresses that are not validated first', { tags: ['slow'] }, () => {
    const { endpoint, drain } = responder({ halfOpen: 8, retryAbove: 100 });
    const stream: Path = { ...path('10.2.0.1', 1), kind: 'websocket', key: 'websocket:1' };
    const validated = crypto.randomBytes(8);
    endpoint.receive(initiate(validated), stream, 0);
    for (let i = 0; i < 50; i++) endpoint.receive(initiate(crypto.randomBytes(8)), path('10.1.0.1', i), 1);
    expect(endpoint.stats).toMatchObject({ halfOpen: 8, halfOpenLost: 43 });
    drain(1);
    endpoint.receive(initiate(validated), stream, 2);
    expect(drain(2)).toHaveLength(1);
    // Only validated ones are left, so a new one of another address is refused.
    for (let i = 0; i < 7; i++) endpoint.receive(initiate(crypto.randomBytes(8)), stream, 3);
    const before = endpoint.stats.halfOpenLost;
    endpoint.receive(initiate(crypto.randomBytes(8)), path('10.1.0.9', 1), 4);
    expect(endpoint.stats).toMatchObject({ halfOpen: 8, halfOpenLost: before });
  });

  it('last while the Initiate is repeated, one minute at most', () => {
    const { endpoint } = responder({ retryAbove: 64 });
    const datagram = initiate(crypto.randomBytes(8));
    for (let now = 0; now <= 56_000; now += 8000) {
      endpoint.receive(datagram, path('10.1.0.1', 1), now);
      endpoint.handleTimeout(now);
    }
    expect([endpoint.stats.halfOpen, endpoint.stats.halfOpenLost, endpoint.nextTimeout()]).toEqual([1, 0, 60_000]);
  });

  it('wait for a Complete while packets for their id arrive, one minute at most', () => {
    for (const [seconds, connects] of [
      [35, true],
      [70, false],
    ] as const) {
      const { network, client, device } = pair(7);
      const connection = dial(client, device);
      const start = network.now;
      const repeated: number[] = [];
      network.tap = ({ bytes }) => {
        if (bytes[0] !== 0x83) return undefined;
        repeated.push(network.now);
        return network.now - start > seconds * 1000;
      };
      network.onEvent = (node, of, event) => {
        if (event.kind === 'opened') of.messages.send(Uint8Array.of(1));
        if (event.kind === 'message' && node === device) of.messages.send(event.data);
      };
      network.pass(seconds * 1000 + 5000);
      const kinds = client.kinds(connection).filter((kind) => kind !== 'suspected');
      expect(kinds).toEqual(connects ? ['opened', 'message'] : ['opened', 'closed']);
      expect(device.endpoint.stats.halfOpenLost).toBe(connects ? 0 : 1);
      const pauses = repeated.slice(1).map((time, i) => time - repeated[i]!);
      expect(Math.max(...pauses)).toBeLessThanOrEqual(2000);
    }
  });

  it('older than 10 s are evicted when the table is full, so five prolonged ones a second leave room for a later one, relayed or direct', {
    tags: ['slow'],
  }, () => {
    const { endpoint, drain } = responder({ retryAbove: 16 });
    const held: { id: Uint8Array; path: Path }[] = [];
    let [refused, mostHeld] = [0, 0];
    for (let now = 0; now < 16_000; now += 200) {
      const begun = carry(endpoint, route(now), now);
      if (begun === null) refused++;
      else held.push({ id: begun, path: route(now) });
      if (now % 5000 === 0) for (const { id, path } of held) endpoint.receive(dataFor(id), path, now);
      endpoint.handleTimeout(now);
      mostHeld = Math.max(mostHeld, endpoint.stats.halfOpen);
    }
    expect([mostHeld, refused]).toEqual([64, 0]);
    drain(16_000);
    expect(carry(endpoint, route(-1), 16_000)).not.toBeNull();
    expect(knock(endpoint, drain, 16_000)).toEqual([0x81, 0x82]);
    expect(endpoint.stats.halfOpen).toBe(64);
  });

  it('that are direct are evicted for a relayed one, and not the other way round', () => {
    const { endpoint, drain } = responder({ halfOpen: 8, retryAbove: 0 });
    for (const index of [8, 9]) expect(carry(endpoint, route(index), 0)).not.toBeNull();
    for (let index = 0; index < 6; index++) {
      const [source, from] = [crypto.randomBytes(8), path(`10.3.${index}.1`, 1)];
      endpoint.receive(initiate(source), from, 0);
      endpoint.receive(initiate(source, decodeRetry(drain(0)[0]!)!.token), from, 0);
      expect(drain(0).map((bytes) => bytes[0])).toEqual([0x82]);
    }
    const carried = Array.from({ length: 6 }, (_, index) => carry(endpoint, route(index), 100));
    expect([carried.includes(null), endpoint.stats.halfOpen]).toEqual([false, 8]);
    // Relayed ones do not evict one another.
    expect(carry(endpoint, route(10), 100)).toBeNull();
  });

  it('are evicted oldest first, none before it is 10 s old, and none while there is room', () => {
    const { endpoint } = responder({ halfOpen: 4, retryAbove: 100 });
    const ids = [0, 1000, 2000, 3000].map((now) => carry(endpoint, route(now), now)!);
    const prolong = (now: number): void => ids.forEach((id, i) => void endpoint.receive(dataFor(id), route(1000 * i), now));
    prolong(9000);
    endpoint.handleTimeout(9999);
    expect([carry(endpoint, route(4000), 9999), endpoint.stats.halfOpenLost]).toEqual([null, 0]);
    endpoint.handleTimeout(12_999);
    expect(endpoint.stats).toMatchObject({ halfOpen: 4, halfOpenLost: 0 });
    // Prolonged last, but begun first.
    endpoint.receive(dataFor(ids[0]!), route(0), 12_999);
    const later = [0, 1, 2, 3].map((i) => carry(endpoint, route(20_000 + i), 12_999));
    expect(later.map((id) => id !== null)).toEqual([true, true, true, false]);
    const unknown = endpoint.stats.unknownId;
    ids.forEach((id, i) => void endpoint.receive(dataFor(id), route(1000 * i), 12_999));
    expect(endpoint.stats.unknownId - unknown).toBe(3);
    expect(endpoint.stats.halfOpenLost).toBe(3);
  });

  it('never run out of ids', { tags: ['slow'] }, () => {
    const { endpoint } = responder({ halfOpen: 4, retryAbove: 100 });
    // More handshakes than the 128 ids.
    for (let i = 0; i < 140; i++) endpoint.receive(initiate(crypto.randomBytes(8)), path('10.1.0.1', i), i);
    expect(endpoint.stats.halfOpen).toBe(4);
  });
});
