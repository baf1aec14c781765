/** The lists of both ends: from when on openers, further openers and checks may leave. */
import { expect, test } from 'vitest';
import type { NatReport } from '../../../protocol/control/index.ts';
import { Lists } from '../../../protocol/rendezvous/lists.ts';
import { complete, peerList } from './ends.ts';

const now = Number.NEGATIVE_INFINITY;
const independent: NatReport = { mapping: 'independent' };
const sequential: NatReport = { mapping: 'sequential', last: 1, stride: 1, age: 0 };

/** Both lists arrive after 200 ms. */
function lists(role: 'client' | 'device', rtt: number | null, remote: NatReport, local?: NatReport): Lists {
  const both = new Lists(role, rtt, 0);
  both.setLocal(complete(undefined, local), 200);
  both.setRemote(peerList([], { opened: 0, nat: remote }), 200);
  return both;
}

test.each([
  ['client', 40, independent, 220],
  ['device', 40, independent, 260],
  ['device', null, independent, 320],
  ['device', 9_000, independent, 720],
  ['client', 300, sequential, 520],
] as const)('further openers of a %s wait for the first ones of the peer (round-trip time %s ms, %o)', (role, rtt, nat, furtherOpeners) => {
  expect(lists(role, rtt, nat).startTimes()).toEqual({ openers: now, furtherOpeners, checkWait: 1_000 });
});

test('everything may begin at once when the peer has opened for our newest list', () => {
  const both = lists('device', 40, independent);
  both.setRemote(peerList([], { opened: 1 }), 210);
  expect(both.startTimes()).toEqual({ openers: now, furtherOpeners: now, checkWait: now });
  both.setLocal(complete(), 220);
  expect(both.startTimes()).toMatchObject({ furtherOpeners: 260, checkWait: 1_000 });
});

test('openers behind a sequential NAT wait for the NAT of the peer, a second at most', () => {
  const both = new Lists('client', 40, 0);
  expect(both.startTimes().openers).toBe(1_000);
  both.setLocal(complete(undefined, sequential), 0);
  expect(both.startTimes().openers).toBe(1_000);
  both.setRemote(peerList([], { nat: independent }), 10);
  expect(both.startTimes().openers).toBe(now);
});
