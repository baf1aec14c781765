/** Why a connection is not direct: each code, from the facts of an attempt. */
import { describe, expect, test } from 'vitest';
import type { NatMapping } from '../../../protocol/control/index.ts';
import {
  type AttemptFacts,
  explain,
  type NotDirectCode,
  notDirect,
  sprayLimited,
  udpBlockedThere,
} from '../../../protocol/rendezvous/explanation.ts';
import type { PairReport } from '../../../protocol/rendezvous/pair.ts';

const pair: PairReport = {
  address: '198.51.100.2',
  port: 5_000,
  kind: 'reflexive',
  state: 'failed',
  checks: 10,
  heard: false,
  limited: false,
  rtt: null,
  reason: '',
};
const nat = (mapping: NatMapping) => ({ mapping });
const independent = nat('independent');
const plain: AttemptFacts = {
  isAnswered: true,
  localNat: independent,
  remoteNat: independent,
  isStunSilent: false,
  localCandidates: 1,
  remoteCandidates: 1,
  pairs: [pair],
  isLargeDropped: false,
  sprayFrom: null,
};

describe('an attempt without a direct path', () => {
  test.each<[NotDirectCode, string, Partial<AttemptFacts>]>([
    ['NO_ANSWER', 'nothing special', {}],
    ['NO_ANSWER', 'no pair', { pairs: [] }],
    ['NO_ANSWER', 'one random, one not', { localNat: nat('random') }],
    ['NO_ANSWER', 'both sequential, which may still succeed', { localNat: nat('sequential'), remoteNat: nat('sequential') }],
    ['NO_ANSWER', 'some addresses limited, others not', { pairs: [{ ...pair, limited: true }, pair] }],
    ['PEER_TOO_OLD', 'no answer of the device', { isAnswered: false }],
    ['PEER_TOO_OLD', 'no answer, whatever else is known', { isAnswered: false, isLargeDropped: true, localCandidates: 0 }],
    ['LARGE_DROPPED', 'checks passed, a challenge did not', { isLargeDropped: true, pairs: [{ ...pair, state: 'answered', heard: true }] }],
    ['NO_CANDIDATES', 'no candidates of our own', { localCandidates: 0 }],
    ['NO_CANDIDATES', 'no candidates of the peer', { remoteCandidates: 0 }],
    ['ONE_WAY', 'heard, but no answer', { pairs: [pair, { ...pair, heard: true }] }],
    ['BOTH_RANDOM', 'two random', { localNat: nat('random'), remoteNat: nat('random') }],
    ['BOTH_RANDOM', 'random and sequential', { localNat: nat('sequential'), remoteNat: nat('random') }],
    [
      'BOTH_RANDOM',
      'random and sequential, with STUN silent',
      { localNat: nat('random'), remoteNat: nat('sequential'), isStunSilent: true },
    ],
    ['STUN_SILENT', 'a blocked port', { isStunSilent: true, localNat: nat('unknown') }],
    ['STUN_SILENT', 'with an end without NAT', { isStunSilent: true, remoteNat: nat('none') }],
    ['UDP_BLOCKED', 'a peer without NAT that cannot be reached', { remoteNat: nat('none') }],
    ['UDP_BLOCKED', 'an end without NAT that reaches no peer', { localNat: nat('none') }],
    ['LIMITED', 'every address limited', { pairs: [{ ...pair, limited: true }] }],
  ])('%s: %s', (code, _, facts) => {
    expect(explain({ ...plain, ...facts })).toEqual(notDirect(code));
  });

  test('LIMITED, within an hour, where the sprayed stage would be next', () => {
    expect(explain({ ...plain, sprayFrom: 3_600_000 })).toBe(sprayLimited);
    expect(explain({ ...plain, sprayFrom: 3_600_000, pairs: [pair, { ...pair, heard: true }] })).toEqual(notDirect('ONE_WAY'));
  });

  test('UDP_BLOCKED at the peer: it does not know its external address', () => {
    const unseen: AttemptFacts = {
      ...plain,
      remoteNat: nat('unknown'),
      pairs: [
        { ...pair, kind: 'near' },
        { ...pair, kind: 'host' },
      ],
    };
    expect(explain(unseen)).toEqual(udpBlockedThere);
    const others: Partial<AttemptFacts>[] = [
      { pairs: [...unseen.pairs, pair] },
      { pairs: [] },
      { remoteNat: independent },
      { remoteNat: null },
      { localNat: nat('unknown') },
      { localNat: null },
    ];
    for (const facts of others) expect(explain({ ...unseen, ...facts })).toEqual(notDirect('NO_ANSWER'));
    expect(explain({ ...unseen, isStunSilent: true })).toEqual(notDirect('STUN_SILENT'));
  });

  test('has a sentence that is true of every such attempt', () => {
    expect(notDirect('BOTH_RANDOM').text).toMatch(/^one NAT gives each flow a random port, and the other a random or sequential one: /);
    expect(notDirect('UDP_BLOCKED').text).toMatch(/^one end is directly on the Internet, yet nothing gets through: /);
  });

  test('counts an answered pair as heard in both directions', () => {
    expect(explain({ ...plain, pairs: [{ ...pair, heard: true, state: 'answered' }] }).code).toBe('NO_ANSWER');
  });
});

test('each code has its own sentence, without a full stop, as errors have', () => {
  const codes: NotDirectCode[] = ['DISABLED', 'IN_PROGRESS', 'PEER_TOO_OLD', 'NO_CANDIDATES', 'UDP_BLOCKED', 'STUN_SILENT'];
  const more: NotDirectCode[] = ['BOTH_RANDOM', 'NO_ANSWER', 'ONE_WAY', 'LARGE_DROPPED', 'LIMITED'];
  const texts = [...codes, ...more].map((code) => notDirect(code).text);
  expect(new Set(texts).size).toBe(11);
  for (const text of texts) expect(text).toMatch(/^[a-z].{15,}[^.]$/);
});
