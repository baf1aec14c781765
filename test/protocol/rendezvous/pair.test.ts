/**
 * A pair: when its openers and checks are due, its rank among others, and its states from waiting to answered or
 * failed.
 */
import { describe, expect, test } from 'vitest';
import { MAIN_SOCKET, MAX_CHECKS, OPENER_HOPS, Pair, type PairKind, reportOf } from '../../../protocol/rendezvous/pair.ts';

const never = Number.POSITIVE_INFINITY;
const make = (kind: PairKind = 'reflexive', openers = OPENER_HOPS.length, address = '198.51.100.2') =>
  new Pair(kind, { address, port: 5_000 }, MAIN_SOCKET, openers);
const atOnce = Number.NEGATIVE_INFINITY;

describe('openers', () => {
  test('have a hop limit of 2, then 4 once they may go further, and 7 after 10 ms more; none follows', () => {
    const pair = make();
    expect(pair.nextOpenerAt(never)).toBe(Number.NEGATIVE_INFINITY);
    expect([pair.state, pair.takeOpener(100)]).toEqual(['waiting', 2]);
    expect([pair.nextOpenerAt(150), pair.nextOpenerAt(atOnce)]).toEqual([150, 110]);
    expect([pair.state, pair.takeOpener(150)]).toEqual(['waiting', 4]);
    expect([pair.state, pair.nextOpenerAt(never), pair.takeOpener(160)]).toEqual(['waiting', 160, 7]);
    expect([pair.state, pair.nextOpenerAt(atOnce), pair.openers]).toEqual(['opened', never, 3]);
  });

  test('are a single one for a predicted port, with a hop limit of 7 to pass all NATs on our side', () => {
    const pair = make('predicted', 1);
    expect([pair.takeOpener(0), pair.openersLeft]).toEqual([7, 0]);
  });

  test('end when they are refused, and the wait for the peer begins then', () => {
    const pair = make();
    pair.skipOpeners(50);
    expect([pair.openersLeft, pair.nextCheckAt(1_000)]).toEqual([0, 1_050]);
  });
});

describe('checks', () => {
  test('wait for the openers, and for the time that the round sets', () => {
    const pair = make();
    expect(pair.nextCheckAt(atOnce)).toBe(never);
    for (const now of [0, 10, 20]) pair.takeOpener(now);
    expect(pair.nextCheckAt(1_000)).toBe(1_020);
  });

  test('are ten, with growing pauses, and a second after the last', () => {
    const pair = make('reflexive', 0);
    const times: number[] = [];
    let now = 0;
    for (; pair.hasChecksLeft; now = pair.nextCheckAt(atOnce)) {
      times.push(now);
      pair.takeCheck(now);
    }
    expect(times).toEqual([0, 50, 150, 350, 750, 1_550, 2_350, 3_150, 3_950, 4_750]);
    expect([pair.checks, MAX_CHECKS, now, pair.state]).toEqual([10, 10, 5_750, 'checking']);
    pair.fail();
    expect([pair.state, pair.isOver, pair.limited, pair.nextCheckAt(atOnce), pair.nextOpenerAt(atOnce)]).toEqual([
      'failed',
      true,
      false,
      never,
      never,
    ]);
  });

  test('begin at once when the peer was heard, also for a failed pair, but never exceed ten', () => {
    const pair = make();
    pair.fail(true);
    pair.hear(500);
    expect([pair.state, pair.heard, pair.openersLeft, pair.nextCheckAt(never)]).toEqual(['opened', true, 0, 500]);
    for (let i = 0; i < MAX_CHECKS; i++) pair.takeCheck(500);
    pair.fail();
    pair.hear(600);
    expect([pair.state, pair.nextCheckAt(atOnce)]).toEqual(['failed', never]);
  });

  test('end with the first answer, which gives the round-trip time', () => {
    const pair = make('reflexive', 0);
    pair.takeCheck(100);
    pair.answer(100, 130);
    pair.answer(100, 900);
    pair.hear(1_000);
    expect([pair.state, pair.rtt, pair.isOver, pair.nextCheckAt(atOnce)]).toEqual(['answered', 30, true, never]);
  });
});

test('near addresses rank before host, mapped, reflexive and predicted ones, and IPv6 before IPv4 in each', () => {
  const pairs = [
    make('predicted'),
    make('reflexive'),
    make('mapped'),
    make('host'),
    make('host', 2, '2001:db8::2'),
    make('near'),
    make('near', 2, 'fd00::2'),
  ];
  expect(pairs.toSorted((a, b) => a.rank - b.rank)).toEqual(pairs.toReversed());
});

test('the same address makes another pair at another socket', () => {
  const remote = { address: '198.51.100.2', port: 5_000 };
  expect(Pair.key(remote, 1)).not.toBe(Pair.key(remote, 0));
});

describe('the report of a pair is a sentence', () => {
  test.each<[string, (pair: Pair) => void, string]>([
    ['nothing yet', () => {}, 'not checked yet'],
    ['checks', (pair) => pair.takeCheck(0), 'no answer to 1 check so far'],
    ['an answer', (pair) => pair.answer(0, 1), 'it answers'],
    ['a failure', (pair) => pair.fail(), 'no answer to 0 checks'],
    ['a refusal', (pair) => pair.fail(true), 'not checked: no more may go to an address that has not answered'],
    [
      'a late one',
      (pair) => [pair.takeCheck(0), pair.fail(true)],
      'no answer to 1 check, and no more may go to an address that has not answered',
    ],
    ['a check of the other end', (pair) => pair.hear(0), 'the other end reaches us, not checked yet'],
    ['one way', (pair) => [pair.hear(0), pair.takeCheck(0)], 'the other end reaches us, our checks get no answer'],
  ])('%s', (_, act, reason) => {
    const pair = make('reflexive', 0);
    act(pair);
    expect(reportOf(pair)).toMatchObject({ address: '198.51.100.2', port: 5_000, kind: 'reflexive', reason, state: pair.state });
  });
});
