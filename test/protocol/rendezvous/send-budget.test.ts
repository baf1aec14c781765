/**
 * Where checks may be sent: what a stranger can have sent to a third party, and the effect of full tables on the next
 * peer.
 */
import fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import { clientLimits, HostBudget, type PeerClass, type RoundBudget, type SendVerdict } from '../../../protocol/rendezvous/send-budget.ts';
import { CONNECT_PACKETS } from '../../support/connect-packets.ts';

const VICTIM = '203.0.113.66';
const PEER = '198.51.100.7';
const address = (index: number): string => `203.0.113.${index}`;

function roundOf(host: HostBudget, peer: PeerClass, now = 0): RoundBudget {
  const round = host.acquireRound(peer, now);
  if (round === null) throw new Error('no place');
  return round;
}

/**
 * Counts packets to a victim in 15 s, with a try every 20 ms: openers first, then checks on as many pairs as needed.
 */
function flood(round: RoundBudget, victim: string, from: number): number {
  let sent = 0;
  for (let i = 0; i < 700; i++) {
    const now = from + 20 * i;
    if (round.takeOpener(victim, now) === 'granted') sent++;
    if (round.takeCheck(`${victim} ${i % 100}`, victim, now) === 'granted') sent++;
  }
  return sent;
}

const times = (count: number, take: (i: number) => SendVerdict): SendVerdict[] => Array.from({ length: count }, (_, i) => take(i));
const granted = (verdicts: readonly SendVerdict[]): number => verdicts.filter((verdict) => verdict === 'granted').length;

let host: HostBudget;
beforeEach(() => {
  host = new HostBudget();
});

describe('an untrusted address', () => {
  test('gets four packets per round, two of them openers', () => {
    const round = roundOf(new HostBudget(), 'known');
    expect(times(3, () => round.takeOpener(VICTIM, 0))).toEqual(['granted', 'granted', 'address']);
    expect(times(3, (i) => round.takeCheck(`pair ${i}`, VICTIM, 0))).toEqual(['granted', 'granted', 'address']);
  });

  test('gets four in all, of any kind, over all its ports and pairs', () => {
    expect(flood(roundOf(new HostBudget(), 'known'), VICTIM, 0)).toBe(4);
    const checksOnly = roundOf(new HostBudget(), 'known');
    expect(granted(times(20, (i) => checksOnly.takeCheck(`pair ${i}`, VICTIM, 0)))).toBe(4);
  });

  test('gets one more check for each of two valid checks from it, and no opener', () => {
    const round = roundOf(new HostBudget(), 'known');
    flood(round, VICTIM, 0);
    round.heard(VICTIM);
    expect(round.takeOpener(VICTIM, 20_000)).toBe('address');
    expect(times(2, () => round.takeCheck('p', VICTIM, 20_000))).toEqual(['granted', 'address']);
    for (let i = 0; i < 50; i++) round.heard(VICTIM);
    expect(granted(times(50, (i) => round.takeCheck(`q ${i}`, VICTIM, 20_100)))).toBe(1);
  });

  test('gets the checks that its own checks allow even when the addresses of a minute are used up', () => {
    const round = roundOf(host, 'known');
    for (let i = 0; i < 16; i++) round.takeCheck(`p ${i}`, address(i), 10 * i);
    expect(round.takeCheck('q', PEER, 200)).toBe('host');
    round.heard(PEER);
    expect(round.takeCheck('q', PEER, 200)).toBe('granted');
  });

  test('gets 12 packets a minute from all rounds of known peers, and 6 in half an hour from those of strangers', () => {
    const inRounds = (peer: PeerClass, from: number): number[] =>
      [0, 1, 2, 3, 4].map((i) => {
        const round = roundOf(host, peer, from + i);
        for (let n = 0; n < 9; n++) round.heard(VICTIM);
        const sent = granted(times(9, (n) => round.takeCheck(`p ${n}`, VICTIM, from + i)));
        round.release();
        return sent;
      });
    expect(inRounds('stranger', 0)).toEqual([6, 0, 0, 0, 0]);
    expect(inRounds('known', 1_000)).toEqual([6, 6, 0, 0, 0]);
    expect(inRounds('known', 61_010)).toEqual([6, 6, 0, 0, 0]);
    expect(inRounds('stranger', 299_000)).toEqual([0, 0, 0, 0, 0]);
    expect(inRounds('stranger', 301_000)).toEqual([1, 0, 0, 0, 0]);
  });
});

describe('an address that is trusted or has answered', () => {
  test.each(['trust', 'answered'] as const)('has only the limits of its pairs: %s', (how) => {
    const round = roundOf(new HostBudget(), 'stranger');
    expect(round.isFree(PEER)).toBe(false);
    round[how](PEER);
    expect(round.isFree(PEER)).toBe(true);
    expect(granted(times(8, () => round.takeOpener(PEER, 0)))).toBe(8);
    for (const pair of ['a', 'b']) expect(times(12, (i) => round.takeCheck(pair, PEER, 1_000 + 100 * i)).lastIndexOf('granted')).toBe(9);
    expect(round.takeCheck('a', PEER, 3_000)).toBe('pair');
  });

  test.each<PeerClass>(['known', 'stranger'])(
    'is no longer counted once it answers, so a peer that connects often gets its packets each time: %s',
    (peer) => {
      for (let connect = 0; connect < 40; connect++) {
        const round = roundOf(host, peer, 100 * connect);
        expect(round.takeOpener(PEER, 100 * connect)).toBe('granted');
        round.answered(PEER);
        round.release();
      }
    },
  );

  test('is trusted only in its round', () => {
    roundOf(host, 'known').trust(PEER);
    expect(flood(roundOf(host, 'known'), PEER, 0)).toBe(4);
  });
});

describe('a station that reports a false address of a client', () => {
  test('makes a device send 2,000 packets there for strangers, then 5 a second, however many rounds they begin', () => {
    const minute = (from: number): number => {
      let sent = 0;
      for (let start = from; start < from + 60_000; start += 1_000) {
        const round = roundOf(host, 'stranger', start);
        round.trust(VICTIM);
        for (let i = 0; i < 100; i++) if (round.takeCheck(`p ${i}`, VICTIM, start + 10 * i) === 'granted') sent++;
        round.release();
      }
      return sent;
    };
    expect(minute(0)).toBeLessThanOrEqual(2_000 + 300 + 6);
    expect(minute(60_000)).toBeLessThanOrEqual(300 + 1);
    const round = roundOf(host, 'stranger', 120_000);
    round.trust(VICTIM);
    expect(round.takeCheck('p', VICTIM, 120_000)).toBe('address');
    // An address that has answered is no victim. Known peers are not affected.
    round.answered(VICTIM);
    expect(round.takeCheck('p', VICTIM, 120_000)).toBe('granted');
    const known = roundOf(host, 'known', 120_000);
    known.trust(VICTIM);
    expect(granted(times(12, (i) => known.takeCheck(`p ${i}`, VICTIM, 120_000)))).toBe(12);
  });
});

describe('a host', () => {
  /** Tries a number of times after each wait in ms. Returns when packets were granted. */
  function sentAfter(steps: readonly { wait: number; tries: number }[]): number[] {
    const round = roundOf(new HostBudget(), 'known');
    round.trust(PEER);
    const sent: number[] = [];
    let now = 0;
    for (const { wait, tries } of steps) {
      now += wait;
      for (let i = 0; i < tries; i++) if (round.takeOpener(PEER, now) === 'granted') sent.push(now);
    }
    return sent;
  }

  function expectAtMost200InAnySecond(sent: readonly number[]): void {
    expect(sent.length).toBeGreaterThan(200);
    for (let i = 200; i < sent.length; i++) expect(sent[i]! - sent[i - 200]!).toBeGreaterThanOrEqual(1_000 - 1e-6);
  }

  test('sends a burst of 40 packets and 160 a second, so 200 in any second at most', () => {
    const sent = sentAfter(Array.from({ length: 3_000 }, () => ({ wait: 1, tries: 20 })));
    expect(Math.abs(sent.length - (40 + 160 * 3))).toBeLessThanOrEqual(1);
    expectAtMost200InAnySecond(sent);
  });

  test('sends 200 packets in any second at most, for random tries', { tags: ['slow'] }, () => {
    const step = fc.record({ wait: fc.integer({ min: 20, max: 60 }), tries: fc.integer({ min: 1, max: 60 }) });
    const steps = fc.array(step, { minLength: 100, maxLength: 200 });
    fc.assert(
      fc.property(steps, (all) => expectAtMost200InAnySecond(sentAfter(all))),
      { seed: 1, numRuns: 50 },
    );
  });

  test('sends to the 32 predicted ports of a round at once, and charges nothing for a refusal by rate', () => {
    const round = roundOf(new HostBudget(), 'known');
    round.trust(PEER);
    expect(granted(times(32, (i) => round.takeCheck(`p ${i}`, PEER, 0)))).toBe(32);
    times(8, () => round.takeOpener(PEER, 0));
    expect(times(20, () => round.takeCheck('q', PEER, 0))).toEqual(new Array(20).fill('rate'));
    expect(granted(times(20, (i) => round.takeCheck('q', PEER, 1_000 + i)))).toBe(10);
    expect(times(10, () => round.takeCheck('r', VICTIM, 1_020))).toContain('address');
  });

  test('sends base packets to 16 addresses in any minute, 8 of them for strangers, also for IPv6', () => {
    const [stranger, known] = [roundOf(host, 'stranger'), roundOf(host, 'known')];
    const at = (round: RoundBudget, prefix: string, now: number): SendVerdict[] =>
      times(20, (i) => round.takeCheck('p', `${prefix}${i}`, now + 10 * i));
    expect(granted(at(stranger, '2001:db8::', 0))).toBe(8);
    expect(granted(at(known, '203.0.113.', 500))).toBe(8);
    expect(at(known, '192.0.2.', 1_000)).toEqual(new Array(20).fill('host'));
    expect(known.takeCheck('q', address(3), 1_300), 'an address of this minute').toBe('granted');
    known.release();
    const later = roundOf(host, 'known', 60_100);
    expect(granted(times(20, (i) => later.takeCheck('p', `192.0.2.${i}`, 60_100)))).toBe(9 - 1);
  });

  test('counts the minute of an address from its last packet', () => {
    const host = new HostBudget({ rounds: { known: 1, stranger: 0 }, addresses: 1, ofStrangers: 0 });
    expect(roundOf(host, 'known').takeCheck('p', address(1), 0)).toBe('granted');
    const second = roundOf(host, 'known', 30_000);
    expect(second.takeCheck('p', address(1), 40_000)).toBe('granted');
    const third = roundOf(host, 'known', 60_000);
    expect([third.takeCheck('p', address(2), 60_001), third.takeCheck('p', address(2), 89_999)]).toEqual(['host', 'host']);
    const fourth = roundOf(host, 'known', 100_000);
    expect(fourth.takeCheck('p', address(2), 100_000)).toBe('granted');
  });

  test('has separate rounds: three for known peers and one for strangers', () => {
    const stranger = roundOf(host, 'stranger');
    expect(host.acquireRound('stranger', 0)).toBeNull();
    const known = [0, 1, 2].map(() => roundOf(host, 'known'));
    expect(host.acquireRound('known', 0)).toBeNull();
    known[1]!.release();
    expect(host.acquireRound('stranger', 0)).toBeNull();
    roundOf(host, 'known');
    stranger.release();
    stranger.release();
    roundOf(host, 'stranger');
    expect(host.acquireRound('stranger', 0)).toBeNull();
  });

  test('frees the slot of a round after 30 s, and grants that round nothing from then on', () => {
    const old = roundOf(host, 'stranger');
    old.trust(PEER);
    expect(host.acquireRound('stranger', 29_999)).toBeNull();
    expect(old.takeCheck('p', PEER, 29_999)).toBe('granted');
    const next = roundOf(host, 'stranger', 30_000);
    expect([old.takeCheck('p', PEER, 30_000), old.takeOpener(PEER, 30_000), old.takeSpray(PEER, 30_000)]).toEqual([
      'ended',
      'ended',
      'ended',
    ]);
    old.release();
    expect(host.acquireRound('stranger', 30_000)).toBeNull();
    next.release();
    expect(next.takeCheck('p', PEER, 30_001)).toBe('ended');
  });

  test('of a client has a round for each of 64 connections, and none for strangers', () => {
    const host = new HostBudget(clientLimits);
    for (let i = 0; i < 64; i++) roundOf(host, 'known');
    expect([host.acquireRound('known', 0), host.acquireRound('stranger', 0)]).toEqual([null, null]);
  });
});

describe('a spray', () => {
  test('goes to a trusted address only, 100 a second beside the checks', () => {
    const round = roundOf(new HostBudget(), 'known');
    round.answered(PEER);
    expect([round.acquireSpray(PEER, 'r', 0), round.takeSpray(PEER, 0)]).toEqual([false, 'address']);
    round.trust(PEER);
    expect(round.takeSpray(PEER, 0)).toBe('ended');
    expect(round.acquireSpray(PEER, 'r', 0)).toBe(true);
    expect(round.takeSpray(VICTIM, 0)).toBe('address');
    expect(times(1_000, (i) => round.takeSpray(PEER, 10 * i)).every((verdict) => verdict === 'granted')).toBe(true);
    expect(times(200, (i) => round.takeSpray(PEER, 10_000 + i)).filter((verdict) => verdict === 'rate').length).toBeGreaterThan(170);
    expect(round.takeOpener(PEER, 10_200)).toBe('granted');
    expect(round.takeSpray(PEER, 15_000)).toBe('ended');
  });

  test('is allowed one at a time, and once an hour for one reason', () => {
    const [one, other] = [roundOf(host, 'known'), roundOf(host, 'known')];
    for (const round of [one, other]) round.trust(PEER);
    expect([one.acquireSpray(PEER, 'a', 0), other.acquireSpray(PEER, 'b', 0), other.takeSpray(PEER, 0)]).toEqual([true, false, 'ended']);
    one.release();
    expect([other.acquireSpray(PEER, 'a', 100), other.acquireSpray(PEER, 'b', 100)]).toEqual([false, true]);
    const later = roundOf(host, 'known', 3_600_000);
    later.trust(PEER);
    expect(later.acquireSpray(PEER, 'b', 3_600_000)).toBe(false);
    // The hour of each reason, and one that the host has not tried.
    expect(['a', 'b', 'c'].map((reason) => later.sprayFrom(PEER, reason, 3_600_000))).toEqual([3_600_000, 3_600_100, 3_600_000]);
    expect(later.sprayFrom('192.0.2.77', 'c', 3_600_000)).toBe(Number.POSITIVE_INFINITY);
    expect(later.acquireSpray(PEER, 'a', 3_600_000)).toBe(true);
  });

  test.each([
    ['known', true],
    ['stranger', false],
  ] as const)('that is cancelled frees its slot; a %s peer may use its reason again: %s', (peer, again) => {
    const host = new HostBudget();
    const [one, other] = [roundOf(host, peer), roundOf(host, 'known')];
    for (const round of [one, other]) round.trust(PEER);
    expect(one.acquireSpray(PEER, 'a', 0)).toBe(true);
    other.cancelSpray();
    expect(one.takeSpray(PEER, 0)).toBe('granted');
    one.cancelSpray();
    expect([one.takeSpray(PEER, 1), one.acquireSpray(PEER, 'a', 1)]).toEqual(['ended', again]);
  });

  test.each([
    ['known', true],
    ['stranger', false],
  ] as const)('that was answered does not count for a %s peer: %s', (peer, again) => {
    const host = new HostBudget();
    const one = roundOf(host, peer);
    one.trust(PEER);
    expect(one.acquireSpray(PEER, 'a', 0)).toBe(true);
    one.answered(PEER);
    expect(one.takeSpray(PEER, 10)).toBe('granted');
    one.release();
    const next = roundOf(host, peer, 5_000);
    next.trust(PEER);
    expect(next.acquireSpray(PEER, 'a', 5_000)).toBe(again);
    next.release();
    const third = roundOf(host, peer, 10_000);
    third.trust(PEER);
    expect(third.acquireSpray(PEER, 'a', 10_000)).toBe(false);
  });

  test('of a stranger is ended for a known peer, not for a stranger', () => {
    const [stranger, known] = [roundOf(host, 'stranger'), roundOf(host, 'known')];
    for (const round of [stranger, known]) round.trust(PEER);
    expect(stranger.acquireSpray(PEER, 'a', 0)).toBe(true);
    expect(stranger.acquireSpray(PEER, 'b', 0)).toBe(false);
    expect([known.acquireSpray(PEER, 'a', 0), stranger.takeSpray(PEER, 0), known.takeSpray(PEER, 0)]).toEqual([true, 'ended', 'granted']);
    expect(stranger.acquireSpray(PEER, 'c', 0)).toBe(false);
  });

  test('by 8 strangers leaves no slot for another one in that hour, and still 128 for known peers', () => {
    const spray = (peer: PeerClass, reason: string, now: number): boolean => {
      const round = roundOf(host, peer, now);
      round.trust(PEER);
      const taken = round.acquireSpray(PEER, reason, now);
      round.release();
      return taken;
    };
    for (let i = 0; i < 8; i++) expect(spray('stranger', `s ${i}`, 1_000 * i)).toBe(true);
    expect(spray('stranger', 's 8', 128_000)).toBe(false);
    const refused = roundOf(host, 'stranger', 128_000);
    refused.trust(PEER);
    expect(refused.sprayFrom(PEER, 's 8', 128_000)).toBe(3_600_000);
    refused.release();
    for (let i = 0; i < 128; i++) expect(spray('known', `k ${i}`, 128_000 + i)).toBe(true);
    expect(spray('known', 'k 128', 129_000)).toBe(false);
    expect([spray('stranger', 's 8', 3_600_000), spray('stranger', 's 0', 3_600_000)]).toEqual([true, false]);
  });
});

describe('a full table', () => {
  test('of pairs refuses further ones, and existing ones continue', () => {
    const round = roundOf(new HostBudget(), 'known');
    round.trust(PEER);
    for (let i = 0; i < 64; i++) expect(round.takeCheck(`p ${i}`, PEER, 100 * i)).toBe('granted');
    expect([round.takeCheck('p 64', PEER, 20_000), round.takeCheck('p 0', PEER, 20_000)]).toEqual(['full', 'granted']);
  });

  test('of addresses refuses those learned from checks, and has room for those that the station reports', () => {
    const round = roundOf(new HostBudget(), 'stranger');
    for (let i = 0; i < 10_000; i++) round.heard(`2001:db8::${i.toString(16)}`);
    expect(round.takeCheck('p', PEER, 0)).toBe('full');
    round.trust(PEER);
    expect(round.takeCheck('p', PEER, 0)).toBe('granted');
    expect(round.takeCheck('p', '2001:db8::0', 0)).toBe('granted');
  });

  test('of a host, filled by a stranger with forged checks, refuses strangers and serves known peers', { tags: ['slow'] }, () => {
    const probe = (peer: PeerClass, from: string, now: number): SendVerdict => {
      const round = roundOf(host, peer, now);
      round.heard(from);
      const verdict = round.takeCheck('p', from, now);
      round.release();
      return verdict;
    };
    for (let i = 0; i < 1_024; i++) expect(probe('stranger', `2001:db8::${i.toString(16)}`, 100 * i)).toBe('granted');
    expect([probe('stranger', PEER, 102_400), probe('known', PEER, 102_400)]).toEqual(['full', 'granted']);
    // One packet of six is available again five minutes later, and the address is forgotten when another one needs its
    // slot.
    expect([probe('stranger', PEER, 299_900), probe('stranger', PEER, 300_000)]).toEqual(['full', 'granted']);
  });
});

describe('a flood by many devices', () => {
  /** IPv4 and UDP headers, bytes. */
  const HEADERS = 28;
  const CHECK = 76 + HEADERS;
  const CONNECT = CONNECT_PACKETS.reduce((sum, length) => sum + length + HEADERS, 0);
  /** POST of a round: Route header, header and tag, message, Tag, Key and one candidate. */
  const POST = 9 + 25 + 20 + 100 + HEADERS;
  /**
   * Smallest packet: Route header, header and tag, PING. Sent often enough to keep the connection, whose idle timeout
   * at the device is 90 s.
   */
  const PING = 9 + 25 + 1 + HEADERS;
  const IDLE = 90_000;
  const DEVICES = 1_000;

  /** Bytes from the stranger to one device, and from that device to the victim. */
  type Sums = { sent: number; received: number };

  /**
   * Plays `rounds` rounds, each `pause` ms after the one before, with `forged` checks from the victim's address in
   * each.
   */
  function attack(host: HostBudget, rounds: number, pause: number, forged: number): Sums {
    const sums = { sent: CONNECT, received: 0 };
    for (let i = 0; i < rounds; i++) {
      const now = i * pause;
      const round = roundOf(host, 'stranger', now);
      sums.sent += POST + CHECK * forged + Math.floor(pause / IDLE) * PING;
      // Each valid check is answered.
      sums.received += CHECK * forged;
      for (let n = 0; n < forged; n++) round.heard(VICTIM);
      for (let n = 0; n < 12; n++) {
        if (round.takeOpener(VICTIM, now + 20 * n) === 'granted') sums.received += CHECK;
        if (round.takeCheck(`pair ${n}`, VICTIM, now + 20 * n) === 'granted') sums.received += CHECK;
      }
      round.release();
    }
    return sums;
  }

  test('is no amplification: 1,000 simulated devices send a victim less than the stranger that asks them sends', () => {
    const all = Array.from({ length: DEVICES }, () => attack(new HostBudget(), 1, 0, 0));
    const received = all.reduce((sum, one) => sum + one.received, 0);
    const sent = all.reduce((sum, one) => sum + one.sent, 0);
    expect(received).toBe(DEVICES * 4 * CHECK);
    expect(received).toBeLessThan(0.7 * sent);
  });

  test('is no amplification with many rounds on one connection, quick or for a day, and checks forged from the victim', () => {
    for (const rounds of [1, 2, 3, 4, 10, 100]) {
      for (const pause of [1_000, 30_000, 90_000, 299_000, 301_000, 600_000, 1_800_000]) {
        for (const forged of [0, 1, 2, 3, 10]) {
          const { sent, received } = attack(new HostBudget(), rounds, pause, forged);
          expect(received, `${rounds} rounds each ${pause} ms, ${forged} forged`).toBeLessThan(sent);
        }
      }
    }
  });

  test('is limited to eight addresses that a stranger names', () => {
    const round = roundOf(new HostBudget(), 'stranger');
    const sent = times(64, (i) => round.takeOpener(address(i), 20 * i));
    expect(granted(sent)).toBe(8);
  });
});
