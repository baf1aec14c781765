/** The small parts of an endpoint, against naive models where there is one. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decode, encode } from '../../../protocol/cbor/index.ts';
import { HalfOpen, type HalfOpenFields } from '../../../protocol/endpoint/half-open.ts';
import { Ids } from '../../../protocol/endpoint/ids.ts';
import { isBest, prologue, supported } from '../../../protocol/endpoint/negotiation.ts';
import {
  decodeInitiatorOffer,
  decodeResponderOffer,
  encodeInitiatorOffer,
  encodeResponderOffer,
} from '../../../protocol/endpoint/parameters.ts';
import { NetworkLimiter } from '../../../protocol/endpoint/rate.ts';
import { Resets } from '../../../protocol/endpoint/reset.ts';
import { Routes } from '../../../protocol/endpoint/routes.ts';
import { type Timed, Timers } from '../../../protocol/endpoint/timers.ts';
import { RESET_LENGTH, u32 } from '../../../protocol/packet/index.ts';
import type { Path } from '../../../protocol/path.ts';
import { nativeHost } from '../../support/crypto.ts';
import { parameters } from '../../support/fixture/endpoints.ts';

fc.configureGlobal({ seed: 1 });

describe('Timers', () => {
  it('agree with a sorted list', () => {
    const operation = fc.tuple(fc.nat(15), fc.oneof(fc.integer({ min: 0, max: 50 }), fc.constant(Number.POSITIVE_INFINITY)), fc.boolean());
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 200 }), (operations) => {
        const owners: Timed[] = Array.from({ length: 16 }, () => ({ timerAt: Number.POSITIVE_INFINITY, timerIndex: -1 }));
        const model = new Map<Timed, number>();
        const timers = new Timers<Timed>();
        for (const [which, at, pop] of operations) {
          const owner = owners[which]!;
          if (pop) {
            const due = timers.due(at);
            const least = Math.min(...model.values());
            if (due === undefined) expect(least > at || model.size === 0).toBe(true);
            else expect(model.get(due)).toBe(least);
            model.delete(due as Timed);
          } else {
            timers.set(owner, at);
            if (at === Number.POSITIVE_INFINITY) model.delete(owner);
            else model.set(owner, at);
          }
          expect(timers.size).toBe(model.size);
          expect(timers.next()).toBe(Math.min(...model.values()));
        }
      }),
    );
  });
});

describe('Ids', () => {
  const secret = new Uint8Array(32).fill(1);

  it('find their owner, and none once released, also when the slot is reused', () => {
    const ids = new Ids<{ id: Uint8Array }>(nativeHost(1), secret, 4);
    const seen = new Set<string>();
    for (let i = 0; i < 100; i++) {
      const owner = ids.allocate((id) => ({ id }))!;
      expect(ids.owner(owner.id)).toBe(owner);
      expect(seen.has(owner.id.join())).toBe(false);
      seen.add(owner.id.join());
      const [high, low] = [u32(owner.id, 0), u32(owner.id, 4)];
      expect(ids.isOurs(high, low)).toBe(true);
      expect(ids.isOurs(high, (low ^ 1) >>> 0)).toBe(false);
      expect(ids.find(high, (low ^ 1) >>> 0)).toBeUndefined();
      ids.release(owner.id);
      ids.release(owner.id);
      expect(ids.owner(owner.id)).toBeUndefined();
    }
  });

  it('are limited to their number', () => {
    const ids = new Ids<object>(nativeHost(1), secret, 5);
    for (let i = 0; i < 8; i++) expect(ids.allocate(() => ({}))).not.toBeNull();
    expect(ids.allocate(() => ({}))).toBeNull();
  });

  it('further ids never take the slots of owners, nor owners theirs', () => {
    const ids = new Ids<object>(nativeHost(1), secret, 5, 3);
    const further = [1, 2, 3, 4].map(() => ids.allocateFurther({}));
    expect(further.map((id) => id === null)).toEqual([false, false, false, true]);
    for (let i = 0; i < 5; i++) expect(ids.allocate(() => ({}))).not.toBeNull();
    expect(ids.allocate(() => ({}))).toBeNull();
    ids.release(further[0]!);
    expect(ids.allocate(() => ({}))).toBeNull();
    expect(ids.allocateFurther({})).not.toBeNull();
  });

  it('are recognised after a restart, but not issued again soon', () => {
    const before = new Ids<{ id: Uint8Array }>(nativeHost(1), secret, 64);
    const after = new Ids<{ id: Uint8Array }>(nativeHost(2), secret, 64);
    const stranger = new Ids<object>(nativeHost(2), secret.with(0, 2), 64);
    const old = before.allocate((id) => ({ id }))!.id;
    expect(after.isOurs(u32(old, 0), u32(old, 4))).toBe(true);
    expect(stranger.isOurs(u32(old, 0), u32(old, 4))).toBe(false);
    expect(after.allocate((id) => ({ id }))!.id).not.toEqual(old);
    expect(after.owner(old)).toBeUndefined();
  });
});

describe('HalfOpen', () => {
  const path: Path = { kind: 'udp', key: 'udp:0:10.0.0.1:1', address: '10.0.0.1', port: 1, socket: 0, local: false };
  const halfOpen = (validated: boolean) => new HalfOpen(new Uint8Array(8), { path, validated } as unknown as HalfOpenFields, 1200);

  it('sends at most three times what it received until the address is validated', () => {
    const unvalidated = halfOpen(false);
    unvalidated.sent = 3000;
    expect([unvalidated.maySend(600), unvalidated.maySend(601)]).toEqual([true, false]);
    expect(halfOpen(true).maySend(10_000)).toBe(true);
  });

  it('knows the round-trip time only if its Respond was sent once', () => {
    const entry = halfOpen(true);
    entry.responding(100);
    expect(entry.rtt(130)).toBe(30);
    entry.responding(1000);
    expect(entry.rtt(1010)).toBe(0);
  });
});

describe('NetworkLimiter', () => {
  it('remembers 4,096 networks and forgets the oldest', () => {
    const limiter = new NetworkLimiter(1);
    const take = (number: number) => limiter.take(`10.${number >> 8}.${number & 255}.1`, 0);
    for (let i = 0; i < 4096; i++) expect(take(i)).toBe(true);
    expect(take(0)).toBe(false);
    expect(take(4096)).toBe(true);
    expect([take(0), take(4095)]).toEqual([true, false]);
  });
});

describe('Resets', () => {
  it('answer only packets longer than a Reset, a thousand times a second at most', () => {
    const resets = new Resets(nativeHost(1), new Uint8Array(32));
    const id = new Uint8Array(8);
    expect(resets.answer(id, RESET_LENGTH, 0)).toBeNull();
    for (let i = 0; i < 1000; i++) expect(resets.answer(id, RESET_LENGTH + 1, 0)).toHaveLength(RESET_LENGTH);
    expect(resets.answer(id, RESET_LENGTH + 1, 0)).toBeNull();
    expect(resets.answer(id, RESET_LENGTH + 1, 1)).not.toBeNull();
  });
});

describe('Routes', () => {
  const channel: Path = { kind: 'udp', key: 'udp:0:10.0.0.1:1', address: '10.0.0.1', port: 1, socket: 0, local: false };
  const route = (id: Uint8Array): Path => ({ ...channel, kind: 'route', key: `route:${id}`, route: id });
  const ids = [Uint8Array.of(1, 1, 1, 1, 0, 0, 0, 1), Uint8Array.of(1, 1, 1, 1, 0, 0, 0, 2), Uint8Array.of(2, 1, 1, 1, 0, 0, 0, 1)];

  it('are found by id and channel while they are used', () => {
    const routes = new Routes();
    const paths = ids.map(route);
    for (const path of paths) routes.add(path);
    routes.add(paths[0]!);
    const find = (id: Uint8Array, from = channel) => routes.find(u32(id, 0), u32(id, 4), from);
    expect(ids.map((id) => find(id))).toEqual(paths);
    expect(find(ids[0]!, { ...channel, port: 2 })).toBeUndefined();
    expect(find(ids[0]!, { ...channel, socket: 1 })).toBeUndefined();
    routes.remove(paths[0]!);
    expect(find(ids[0]!)).toBe(paths[0]);
    for (const path of paths) routes.remove(path);
    expect(ids.map((id) => find(id))).toEqual([undefined, undefined, undefined]);
    routes.remove(channel);
  });

  it('end only by their own token', () => {
    const routes = new Routes();
    const token = new Uint8Array(16).fill(9);
    const path = route(ids[0]!);
    routes.add(path, token);
    routes.add(route(ids[1]!));
    expect(routes.resetBy(ids[0]!, token, channel)).toBe(path);
    expect(routes.resetBy(ids[0]!, token.with(15, 8), channel)).toBeUndefined();
    expect(routes.resetBy(ids[1]!, token, channel)).toBeUndefined();
    expect(routes.resetBy(ids[1]!, new Uint8Array(0), channel)).toBeUndefined();
  });
});

describe('payloads of messages 2 and 3', () => {
  const id = Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8);
  const resetToken = new Uint8Array(16).fill(3);
  const second = { parameters, flowParts: 64, id, resetToken, info: { ProductId: 'p', DeviceId: 'd' } };
  const third = { parameters, flowParts: 0, id, resetToken, versions: Uint8Array.of(1), suites: Uint8Array.of(1) };
  const raw = {
    IdleTimeout: 0,
    MaxUdpPayload: 1452,
    MaxData: 1 << 20,
    MaxStreamData: 1,
    MaxStreams: 1,
    MaxMessages: 1,
    MaxAckDelay: 25,
    Id: id,
    ResetToken: resetToken,
    Versions: Uint8Array.of(1),
    Suites: Uint8Array.of(1),
  };

  it('survive a round trip, and are small', () => {
    for (const crowded of [false, true])
      expect(decodeResponderOffer(encodeResponderOffer({ ...second, crowded }, encode(second.info)))).toEqual({ ...second, crowded });
    expect(decodeInitiatorOffer(encodeInitiatorOffer(third))).toEqual(third);
    expect(encodeResponderOffer(second, encode(second.info)).length).toBeLessThan(300);
  });

  it('announce no parts when they do not say so, and no more than can be put together', () => {
    const flowParts = (fields: object) => decodeInitiatorOffer(encode({ ...raw, ...fields })).flowParts;
    expect([flowParts({}), flowParts({ FlowParts: 3 }), flowParts({ FlowParts: 2 ** 40 })]).toEqual([0, 3, 64]);
    expect(decode(encodeInitiatorOffer(third))).not.toHaveProperty('FlowParts');
  });

  it('ignore unknown fields, and bound large values', () => {
    expect(decodeInitiatorOffer(encode({ ...raw, New: [1, { a: 2 }], MaxData: 2 ** 50, MaxStreams: 2 ** 40 })).parameters).toMatchObject({
      initialMaxData: 0x7fff_ffff,
      maxStreams: 0x7fff_ffff,
      maxDatagram: 0,
    });
  });

  it.each([
    { MaxUdpPayload: 1199 },
    { MaxUdpPayload: 65_528 },
    { MaxData: 133_119 },
    { MaxAckDelay: 16_384 },
    { MaxStreams: -1 },
    { MaxStreams: 1.5 },
    { IdleTimeout: 'x' },
    { ResetToken: new Uint8Array(15) },
    { Id: new Uint8Array(7) },
    { Versions: new Uint8Array(0) },
    { Suites: 1 },
    { MaxDatagram: 70_000 },
    { FlowParts: -1 },
    { FlowParts: 'all' },
    { MaxMessages: undefined },
  ])('are refused with %j', (change) => {
    expect(() => decodeInitiatorOffer(encode({ ...raw, ...change }))).toThrow(
      expect.objectContaining({ name: 'RemoteError', code: 'PARSE' }),
    );
  });

  it('are refused unless they are a map', () => {
    for (const bytes of [new Uint8Array(0), encode([1]), encode('x'), Uint8Array.of(0xbf), Uint8Array.of(0xff)]) {
      expect(() => decodeResponderOffer(bytes)).toThrow(expect.objectContaining({ name: 'RemoteError' }));
    }
  });
});

describe('negotiation', () => {
  it('accepts version 1 with suite 1, and prefers it whenever offered', () => {
    expect([supported(1, 1), supported(1, 2), supported(2, 1)]).toEqual([true, false, false]);
    expect(isBest(1, 1, { versions: Uint8Array.of(9, 1), suites: Uint8Array.of(1, 7) })).toBe(true);
    expect(isBest(1, 1, { versions: Uint8Array.of(9), suites: Uint8Array.of(1) })).toBe(false);
  });

  it('binds version, suite and name into the prologue', () => {
    expect(prologue(1, 1, 'station')).toEqual(
      Uint8Array.of(...new TextEncoder().encode('svc'), 1, 1, ...new TextEncoder().encode('station')),
    );
  });
});
