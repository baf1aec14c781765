/**
 * Key update (PROTOCOL.md §4, RFC 9001 §6): each direction alone, over lossy and reordering links, and violations by a
 * peer.
 */
import { describe, expect, it } from 'vitest';
import { EventKind, TransportError } from '../../bindings/index.ts';
import { seeds } from '../support/tiered.ts';
import { forge, rekey } from './forge.ts';
import { type End, Line, Pair, type PairOptions } from './pair.ts';
import { content, Exchange } from './traffic.ts';

const PING = [0x01];
const HOUR = 3_600_000;
/** Keys of the initiator's direction by phase. */
const KEYS: Uint8Array[] = [new Uint8Array(32).fill(1)];
for (let phase = 1; phase < 5; phase++) KEYS.push(rekey(KEYS[phase - 1] as Uint8Array));

/**
 * A transfer in both directions during which `update` is called every `period` ms; true when all bytes have arrived.
 */
function transfer(options: PairOptions, update: (pair: Pair) => void, period = 100, total = 500_000): Pair {
  // the line keeps the transfer running for several times 3 PTO
  const pair = new Pair({ ...options, line: new Line(3e6, 30_000) });
  const exchange = new Exchange(pair, total);
  while (!exchange.done() && pair.now < 300_000) {
    pair.run(period, exchange.done);
    update(pair);
  }
  // A key update at the end still has to reach the other end.
  for (const end of pair.ends) end.connection.ping();
  pair.run(1_000);
  expect(exchange.read).toEqual([
    [0, total],
    [0, total],
  ]);
  return pair;
}

/** Key updates reported by an end: of its own sending key, of the peer's. */
function updates(end: End): [number, number] {
  const count = (value: number) => end.events.filter((event) => event.kind === EventKind.KEY_UPDATED && event.value === value).length;
  return [count(0), count(1)];
}

const update = (end: End) => end.connection.updateKey();

/** A pair whose responder has sent an ACK, so that the initiator may update; packets sent afterwards are dropped. */
function acknowledged(): Pair {
  const pair = new Pair();
  pair.inject(forge({ number: 1, frames: PING }), pair.responder);
  pair.run(100);
  pair.intercept = () => null;
  return pair;
}

function closeCode(pair: Pair): number | undefined {
  pair.run(10);
  return pair.responder.events.find(({ kind }) => kind === EventKind.CLOSED)?.value;
}

describe('a key update during a transfer', () => {
  const links = [
    ['without loss', {}],
    ['with loss', { loss: 0.05 }],
    ['reordered across the flip', { delay: 20, jitter: 40 }],
    ['with all of it', { loss: 0.05, jitter: 30, duplicate: 0.1 }],
  ] as const;
  it.each(links)('by the initiator, %s', (_name, link) => {
    const pair = transfer({ link, seed: 21 }, ({ initiator }) => update(initiator));
    const [ours] = updates(pair.initiator);
    expect(ours).toBeGreaterThan(1);
    expect(updates(pair.initiator)).toEqual([ours, 0]);
    expect(updates(pair.responder)).toEqual([0, ours]);
  });

  it.each(links)('by the responder, %s', (_name, link) => {
    const pair = transfer({ link, seed: 22 }, ({ responder }) => update(responder));
    const [ours] = updates(pair.responder);
    expect(ours).toBeGreaterThan(1);
    expect(updates(pair.initiator)).toEqual([0, ours]);
  });

  describe.each(links)('simultaneous, %s', (_name, link) => {
    it.each(seeds(1, 3))('seed %i', (seed) => {
      const pair = transfer({ link, seed }, ({ ends }) => ends.forEach(update));
      const [initiators, responders] = [updates(pair.initiator), updates(pair.responder)];
      expect(Math.min(...initiators)).toBeGreaterThan(1);
      expect([initiators[0], responders[0]]).toEqual([responders[1], initiators[1]]);
      expect(pair.initiator.connection.stats().authenticationFailures).toBe(0);
    });
  });
});

describe('the receiver', () => {
  it('derives the next key by REKEY of Noise and switches with the first packet that opens', () => {
    const pair = acknowledged();
    expect(pair.inject(forge({ number: 2, frames: PING, phase: true }), pair.responder)).toBe(false);
    expect(updates(pair.responder)).toEqual([0, 0]);
    expect(pair.inject(forge({ number: 10, frames: PING, phase: true, key: KEYS[1] }), pair.responder)).toBe(true);
    pair.run(10);
    expect(updates(pair.responder)).toEqual([0, 1]);
  });

  it('accepts late packets of the old phase for a while, then no longer', () => {
    const pair = acknowledged();
    pair.inject(forge({ number: 10, frames: PING, phase: true, key: KEYS[1] }), pair.responder);
    expect(pair.inject(forge({ number: 3, frames: PING }), pair.responder)).toBe(true);
    pair.run(10_000);
    expect(pair.inject(forge({ number: 4, frames: PING }), pair.responder)).toBe(false);
    expect(closeCode(pair)).toBeUndefined();
  });

  it('accepts early packets of the new phase in any order, and old ones between them', () => {
    const pair = acknowledged();
    const order = [14, 12, 7, 13, 9, 11, 10, 8];
    for (const number of order) {
      const isNew = number >= 10;
      const packet = forge({ number, frames: PING, phase: isNew, key: KEYS[isNew ? 1 : 0] });
      expect(pair.inject(packet, pair.responder), `number ${number}`).toBe(true);
    }
    expect(closeCode(pair)).toBeUndefined();
    expect(updates(pair.responder)).toEqual([0, 1]);
  });

  it('updates again only after an acknowledgement: then a third phase with the bit of the first opens', () => {
    const pair = acknowledged();
    pair.inject(forge({ number: 10, frames: PING, phase: true, key: KEYS[1] }), pair.responder);
    pair.run(100);
    expect(pair.inject(forge({ number: 12, frames: PING, key: KEYS[2] }), pair.responder)).toBe(true);
    expect(closeCode(pair)).toBeUndefined();
    expect(updates(pair.responder)).toEqual([0, 2]);
  });

  it('keeps its phase under any number of forged packets of either phase', () => {
    const pair = acknowledged();
    const random = content(5, 0, 32);
    for (let number = 2; number < 500; number++) {
      expect(pair.inject(forge({ number, frames: PING, phase: number % 2 === 0, key: random }), pair.responder)).toBe(false);
    }
    expect(pair.responder.connection.stats().authenticationFailures).toBe(498);
    expect(pair.inject(forge({ number: 600, frames: PING, phase: true, key: KEYS[1] }), pair.responder)).toBe(true);
    expect(closeCode(pair)).toBeUndefined();
  });
});

describe('a sender', () => {
  it('is refused an update before the peer has acknowledged a packet', () => {
    const pair = new Pair();
    pair.initiator.connection.ping();
    expect(update(pair.initiator)).toBe(false);
    pair.run(1_000);
    expect(update(pair.initiator)).toBe(true);
  });

  it('waits for 3 PTO after that acknowledgement, then for the next one', () => {
    const pair = new Pair({ link: { delay: 100 } });
    const { initiator } = pair;
    initiator.connection.ping();
    pair.run(300, () => update(initiator));
    const asked = pair.now;
    const flips: number[] = [];
    initiator.onEvent = ({ kind }) => {
      if (kind === EventKind.KEY_UPDATED) flips.push(pair.now);
    };
    for (let i = 0; i < 600; i++) {
      initiator.connection.ping();
      pair.run(10);
      update(initiator);
    }
    // the first PTO is measured at 200 + 4 · 100 + 25 ms, and falls with the variation of the RTT: never below 225
    expect((flips[0] as number) - asked).toBeGreaterThan(3 * 225);
    for (let i = 1; i < flips.length; i++) expect((flips[i] as number) - (flips[i - 1] as number)).toBeGreaterThan(200 + 3 * 225);
    expect(flips.length).toBeGreaterThan(3);
  });

  it('updates by itself an hour after the first use, not after the first acknowledgement', () => {
    const pair = new Pair({ parameters: { idleTimeout: 0 } });
    const start = pair.now;
    const ping = (at: number) => {
      pair.run(start + at - pair.now);
      pair.initiator.connection.ping();
      pair.run(1_000);
    };
    ping(HOUR / 2);
    ping(HOUR - 10_000);
    expect(updates(pair.initiator)).toEqual([0, 0]);
    ping(HOUR);
    expect(updates(pair.initiator)).toEqual([1, 0]);
    expect(updates(pair.responder)).toEqual([0, 1]);
    ping(2 * HOUR - 10_000);
    expect(updates(pair.initiator)).toEqual([1, 0]);
    ping(2 * HOUR);
    expect(updates(pair.initiator)).toEqual([2, 0]);
  });
});

describe('KEY_UPDATE_ERROR', () => {
  it('for a peer that updates twice before it can know of the first update', () => {
    const pair = acknowledged();
    pair.inject(forge({ number: 10, frames: PING, phase: true, key: KEYS[1] }), pair.responder);
    expect(pair.inject(forge({ number: 11, frames: PING, key: KEYS[2] }), pair.responder)).toBe(true);
    expect(closeCode(pair)).toBe(TransportError.KEY_UPDATE_ERROR);
  });

  it('for a peer that updates before anything was acknowledged', () => {
    const pair = new Pair();
    pair.intercept = () => null;
    pair.inject(forge({ number: 10, frames: PING, phase: true, key: KEYS[1] }), pair.responder);
    expect(closeCode(pair)).toBe(TransportError.KEY_UPDATE_ERROR);
  });

  it('for an old key on a higher packet number, when the new key arrives later', () => {
    const pair = acknowledged();
    pair.inject(forge({ number: 12, frames: PING }), pair.responder);
    pair.inject(forge({ number: 11, frames: PING, phase: true, key: KEYS[1] }), pair.responder);
    expect(closeCode(pair)).toBe(TransportError.KEY_UPDATE_ERROR);
  });

  it('for a new key on a packet number below one of the old key', () => {
    const pair = acknowledged();
    pair.inject(forge({ number: 12, frames: PING, phase: true, key: KEYS[1] }), pair.responder);
    pair.inject(forge({ number: 11, frames: PING }), pair.responder);
    expect(closeCode(pair)).toBeUndefined();
    pair.inject(forge({ number: 10, frames: PING, phase: true, key: KEYS[1] }), pair.responder);
    expect(closeCode(pair)).toBe(TransportError.KEY_UPDATE_ERROR);
  });

  it('not for an old key on a packet number above the new phase: no key opens it, so it is dropped like a forgery', () => {
    const pair = acknowledged();
    pair.inject(forge({ number: 10, frames: PING, phase: true, key: KEYS[1] }), pair.responder);
    expect(pair.inject(forge({ number: 11, frames: PING }), pair.responder)).toBe(false);
    expect(closeCode(pair)).toBeUndefined();
    expect(pair.responder.connection.stats().authenticationFailures).toBe(1);
  });

  it('reaches the peer', () => {
    const pair = new Pair();
    pair.inject(forge({ number: 10, frames: PING, phase: true, key: KEYS[1] }), pair.responder);
    pair.run(5_000);
    expect(pair.initiator.events).toContainEqual({ kind: EventKind.CLOSED, stream: 0, value: TransportError.KEY_UPDATE_ERROR });
  });
});
