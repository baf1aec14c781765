/**
 * One round at one end: openers before checks, the effect of valid checks and answers, and that nothing else has any.
 */
import { describe, expect, test } from 'vitest';
import type { Candidate, NatReport } from '../../../protocol/control/index.ts';
import { deviceLimits } from '../../../protocol/rendezvous/index.ts';
import { verifyCheck } from '../../../protocol/stun/index.ts';
import { nativeHost } from '../../support/crypto.ts';
import { at, candidate, complete, End, type EndOptions, PEER, peerKeys, peerList } from './ends.ts';

const ELSEWHERE = '203.0.113.9';

/** Makes an end with its own list and a list of the peer. */
function begun(
  candidates: readonly Candidate[],
  { opened = 1, nat, ...options }: EndOptions & { opened?: number; nat?: NatReport } = {},
): End {
  const end = new End(options);
  end.agent.setLocal(complete(), 0);
  end.agent.setRemote(peerList(candidates, { opened, ...(nat && { nat }) }), 0);
  return end;
}

const targets = (sent: readonly { to: { address: string; port: number } }[]) => sent.map(({ to }) => `${to.address}:${to.port}`);

describe('a round', () => {
  test('sends three openers to each address of the peer, the near ones first, then checks of full hop limit, 10 ms apart', () => {
    const end = begun([candidate(PEER, 5_000), candidate(PEER, 5_001)]);
    const sent = end.run(0, 100);
    expect(sent.slice(0, 6).map(({ hopLimit }) => hopLimit)).toEqual([2, 2, 4, 4, 7, 7]);
    expect(sent.slice(6).every(({ hopLimit }) => hopLimit === undefined)).toBe(true);
    expect(sent.slice(0, 3).map(({ time }) => time)).toEqual([0, 1, 10]);
    expect(sent.slice(2).every(({ time }, i, rest) => i === 0 || time - rest[i - 1]!.time >= 10)).toBe(true);
    expect(sent.every(({ datagram }) => verifyCheck(datagram, peerKeys.key, nativeHost(1)))).toBe(true);
    expect(end.agent.round.lists.opened).toBe(1);
    expect(end.kinds).toContain('changed');
  });

  test('sends no check until the peer has opened, or a second has passed', () => {
    const end = begun([candidate(PEER, 5_000)], { opened: 0 });
    const early = end.run(0, 1_500);
    // The peer never reported its NAT, so the further openers waited a second, too.
    expect(early.map(({ hopLimit, time }) => [hopLimit, time])).toEqual([
      [2, 0],
      [4, 1_020],
      [7, 1_030],
    ]);
    const [first] = end.run(1_500, 2_100);
    expect([first!.hopLimit, first!.time]).toEqual([undefined, 2_030]);
  });

  test('predicts ports of the newest IPv4 address, 32 in all', () => {
    const end = new End();
    end.agent.setLocal(complete(undefined, { mapping: 'independent' }), 0);
    const list = [candidate('203.0.113.8', 5_000), candidate(PEER, 6_000), candidate('2001:db8::2', 4_000)];
    end.agent.setRemote(peerList(list, { nat: { mapping: 'sequential', last: 6_000, stride: 1, age: 0 } }), 0);
    end.run(0, 100);
    const predicted = end.agent.round.checklist.pairs.filter(({ kind }) => kind === 'predicted');
    expect([new Set(predicted.map(({ remote }) => remote.address)), predicted.length]).toEqual([new Set([PEER]), 32]);
  });

  test('sends to near addresses first, and to IPv6 before IPv4', () => {
    const isNear = (address: string) => address.startsWith('192.168.');
    const list = [
      candidate(PEER, 1),
      candidate('2001:db8::2', 2, 'host'),
      candidate('192.168.1.9', 3, 'host'),
      candidate('10.0.0.9', 4, 'host'),
    ];
    const end = begun(list, { isNear });
    expect(targets(end.run(0, 5))).toEqual(['192.168.1.9:3', '2001:db8::2:2', '10.0.0.9:4', `${PEER}:1`]);
  });

  test('sends ten checks per pair, and is then exhausted', () => {
    const end = begun([candidate(PEER, 5_000)]);
    const sent = end.run(0, 60_000);
    expect(sent.length).toBe(13);
    expect(end.kinds.at(-1)).toBe('exhausted');
    expect([sent.at(-1)!.time, end.agent.round.checklist.pairs[0]!.state]).toEqual([expect.closeTo(4_780, -2), 'failed']);
  });

  test('skips and counts an unusable candidate', () => {
    const end = begun([candidate('127.0.0.1', 1), candidate('224.0.0.1', 2), candidate(PEER, 3)], { isUsable: ({ port }) => port === 3 });
    expect(new Set(targets(end.run(0, 10_000)))).toEqual(new Set([`${PEER}:3`]));
    expect(end.agent.round.stats.unusable).toBe(2);
  });

  test('sends four packets to an untrusted address, whose pairs report the limit', () => {
    const end = begun([candidate(ELSEWHERE, 1), candidate(ELSEWHERE, 2), candidate(ELSEWHERE, 3)], { trusted: [], limits: deviceLimits });
    expect(end.run(0, 30_000).length).toBe(4);
    expect(end.agent.round.checklist.pairs.every(({ limited, state }) => limited && state === 'failed')).toBe(true);
  });

  test('sends nothing after its end, not even an answer', () => {
    const end = begun([candidate(PEER, 5_000)]);
    end.run(0, 30);
    end.agent.end();
    expect([end.run(31, 10_000), end.check(at(PEER, 5_000), 40)]).toEqual([[], null]);
  });

  test('wipes the keys of both ends at its end', () => {
    const end = begun([candidate(PEER, 5_000)]);
    const keys = [end.keys.key, end.agent.round.lists.remote!.key];
    expect(keys.some((key) => key.every((byte) => byte === 0))).toBe(false);
    end.agent.end();
    expect(keys.every((key) => key.every((byte) => byte === 0))).toBe(true);
  });
});

describe('lists', () => {
  test('of the same or an older number change nothing, and what was opened stays', () => {
    const end = begun([candidate(PEER, 5_000)]);
    end.agent.setRemote(peerList([candidate(PEER, 6_000)], { number: 1, opened: 0 }), 0);
    end.agent.setRemote(peerList([candidate(PEER, 7_000)], { number: 0, opened: 9 }), 0);
    expect(end.agent.round.checklist.pairs.map(({ remote }) => remote.port)).toEqual([5_000]);
    expect(end.agent.round.lists.remote).toMatchObject({ number: 1, opened: 1 });
  });

  test('of a greater number add pairs, which are opened before `opened` says so', () => {
    const end = begun([candidate(PEER, 5_000)]);
    end.run(0, 50);
    end.agent.setRemote(peerList([candidate(PEER, 5_000), candidate(PEER, 6_000)], { number: 5 }), 50);
    expect(end.agent.round.lists.opened).toBe(1);
    const sent = end.run(50, 100);
    expect(sent.filter(({ hopLimit }) => hopLimit !== undefined).map(({ to, hopLimit }) => [to.port, hopLimit])).toEqual([
      [6_000, 2],
      [6_000, 4],
      [6_000, 7],
    ]);
    expect(end.agent.round.lists.opened).toBe(5);
  });

  test('make 64 pairs at most, even hundreds with eight candidates each', () => {
    const end = begun([]);
    for (let number = 2; number < 200; number++) {
      const list = Array.from({ length: 8 }, (_, i) => candidate(PEER, 1 + number * 8 + i));
      end.agent.setRemote(peerList(list, { number }), number);
    }
    expect(end.agent.round.checklist.pairs.length).toBe(64);
    expect(end.run(200, 31_000).length).toBeLessThanOrEqual(64 * 13);
  });
});

describe('a received check', () => {
  test('is answered, and its source checked at once, before the peer has reported that it opened', () => {
    const end = begun([candidate(PEER, 5_000)], { opened: 0 });
    end.run(0, 50);
    expect(end.check(at(PEER, 5_555), 50)).not.toBeNull();
    expect(end.run(50, 55).map(({ to, hopLimit }) => [to.port, hopLimit])).toEqual([[5_555, undefined]]);
    const [, found] = end.agent.round.checklist.pairs;
    expect([found!.kind, found!.heard]).toEqual(['peer-reflexive', true]);
  });

  test('is answered before the list of the peer is known, and checked in return once there are keys', () => {
    const end = new End();
    expect(end.check(at(PEER, 5_555), 0)).not.toBeNull();
    // Nothing is due until the round ends.
    expect([end.transmit(0), end.nextTimeout()]).toEqual([null, 30_000]);
    end.agent.setLocal(complete(), 10);
    end.agent.setRemote(peerList([]), 10);
    expect(targets(end.run(10, 15))).toEqual([`${PEER}:5555`]);
  });

  test('under another key gets no answer, makes no pair, and is counted', () => {
    const end = begun([]);
    expect(end.check(at(PEER, 5_555), 0, { key: peerKeys.key })).toBeNull();
    expect([end.agent.round.checklist.pairs.length, end.agent.round.stats.invalid]).toEqual([0, 1]);
  });

  test('from a thousand other ports makes 16 pairs, and each is answered', () => {
    const end = begun([candidate(PEER, 5_000)]);
    for (let port = 10_000; port < 11_000; port++) expect(end.check(at(PEER, port), 0)).not.toBeNull();
    expect(end.agent.round.checklist.pairs.length).toBe(17);
    expect(end.run(0, 30_000).length).toBeLessThanOrEqual(3 + 17 * 10);
  });

  test('from a thousand untrusted addresses causes five checks in return to each of 16 at most', () => {
    const end = begun([], { trusted: [], limits: deviceLimits });
    for (let i = 0; i < 1_000; i++) end.check(at(`203.0.${i >> 8}.${i & 0xff}`, 5_000), 0);
    const sent = end.run(0, 30_000);
    const addresses = new Set(targets(sent));
    expect(addresses.size).toBeLessThanOrEqual(16);
    expect(sent.length).toBeLessThanOrEqual(5 * addresses.size);
  });

  test('is answered 1,024 times in a round at most, since a holder of the key can spoof its source', () => {
    const end = begun([candidate(PEER, 5_000)]);
    let answered = 0;
    for (let i = 0; i < 1_100; i++) if (end.check(at(`203.0.${i >> 8}.${i & 0xff}`, 1_000), 10) !== null) answered++;
    expect(answered).toBe(1_024);
  });

  test('from an unusable address makes no pair', () => {
    const end = begun([], { isUsable: ({ address }) => address !== '127.0.0.1' });
    end.check(at('127.0.0.1', 5_000), 0);
    expect(end.agent.round.checklist.pairs).toEqual([]);
  });
});

describe('an answer', () => {
  const opened = () => {
    const end = begun([candidate(PEER, 5_000)]);
    const [opener, , , check] = end.run(0, 35);
    return { end, opener: opener!, check: check! };
  };

  test('makes the pair, once', () => {
    const { end, check } = opened();
    expect(end.answer(check, 60)).toBe(true);
    end.run(60, 61);
    expect(end.events.find(({ kind }) => kind === 'answered')).toMatchObject({
      pair: { remote: at(PEER, 5_000), rtt: 30, state: 'answered' },
    });
    expect(end.answer(check, 61)).toBe(false);
    expect(end.kinds.filter((kind) => kind === 'answered').length).toBe(1);
    expect(end.run(61, 30_000)).toEqual([]);
  });

  test('to an opener makes the pair, too', () => {
    const { end, opener } = opened();
    expect(end.answer(opener, 60)).toBe(true);
  });

  test.each([
    ['from another port', { from: at(PEER, 5_001) }],
    ['from another address', { from: at(ELSEWHERE, 5_000) }],
    ['at another socket', { socket: 3 }],
    ['under another key', { key: new Uint8Array(16).fill(9) }],
    ['under our own key', { key: new Uint8Array(16).fill(1) }],
  ])('%s makes no pair, is counted, and does not prevent the valid one', (_, wrong) => {
    const { end, check } = opened();
    expect(end.answer(check, 50, wrong)).toBe(false);
    expect([end.agent.round.checklist.hasAnswer, end.agent.round.stats.invalid]).toEqual([false, 1]);
    expect(end.answer(check, 60)).toBe(true);
  });

  test('to a packet that was never sent is left to others', () => {
    const { end, check } = opened();
    const stranger = begun([candidate(PEER, 5_000)], { seed: 9 });
    expect(stranger.answer(check, 50)).toBe(false);
    expect([stranger.agent.round.stats.invalid, end.agent.round.checklist.hasAnswer]).toEqual([0, false]);
  });

  test('of an untrusted address ends its limit', () => {
    const end = begun([candidate(ELSEWHERE, 1), candidate(ELSEWHERE, 2)], { trusted: [], limits: deviceLimits });
    const sent = end.run(0, 30);
    expect(end.answer(sent[0]!, 40)).toBe(true);
    expect(end.budget.isFree(ELSEWHERE)).toBe(true);
  });
});

test('each packet has its own transaction id', () => {
  const end = begun([candidate(PEER, 5_000), candidate(PEER, 5_001)]);
  const ids = end.run(0, 10_000).map(({ datagram }) => Buffer.from(datagram.subarray(8, 20)).toString('hex'));
  expect(new Set(ids).size).toBe(ids.length);
});
