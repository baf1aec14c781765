/** Many checks that count as one: their destinations, and their answers. */
import { describe, expect, test } from 'vitest';
import { MAIN_SOCKET } from '../../../protocol/rendezvous/index.ts';
import type { RoundPacket } from '../../../protocol/rendezvous/round.ts';
import { fromSockets, toRandomPorts, Volley, type VolleyPlan } from '../../../protocol/rendezvous/volley.ts';
import { encodeCheckAnswer, verifyCheck } from '../../../protocol/stun/index.ts';
import { nativeHost } from '../../support/crypto.ts';
import { at, PEER, peerKeys } from './ends.ts';

const crypto = nativeHost(1);
const volleyOf = (plan: VolleyPlan, hopLimit?: number) =>
  new Volley({ crypto, ...peerKeys, plan, ...(hopLimit !== undefined && { hopLimit }) });

/** Returns all packets up to a time, with times. */
function run(volley: Volley, until: number): (RoundPacket & { readonly time: number })[] {
  const sent: (RoundPacket & { readonly time: number })[] = [];
  for (let now = volley.nextTimeout(); now <= until; now = volley.nextTimeout()) {
    const packet = volley.transmit(now);
    if (packet !== null) sent.push({ ...packet, time: now });
  }
  return sent;
}

test('a volley from sockets sends one packet each, numbered from 1, at their pace and with their hop limit', () => {
  const volley = volleyOf(fromSockets(4, at(PEER, 5_000), 2, 100), 4);
  expect(volley.transmit(99)).toBeNull();
  const sent = run(volley, 1_000);
  expect(sent.map(({ socket, time, hopLimit }) => [socket, time, hopLimit])).toEqual([
    [1, 100, 4],
    [2, 102, 4],
    [3, 104, 4],
    [4, 106, 4],
  ]);
  expect([volley.isOut, volley.transmit(2_000)]).toEqual([true, null]);
  expect(sent.every(({ datagram }) => verifyCheck(datagram, peerKeys.key, crypto))).toBe(true);
});

test('a volley to random ports sends to all of one address from the main socket, each once, with the system hop limit', () => {
  const volley = volleyOf(toRandomPorts(PEER, (length) => crypto.randomBytes(length), 100));
  const sent = run(volley, 100_000);
  expect(sent.length).toBe(1_024);
  expect(new Set(sent.map(({ to }) => to.port)).size).toBe(1_024);
  expect(sent.every(({ to, socket, hopLimit }) => to.address === PEER && socket === MAIN_SOCKET && hopLimit === undefined)).toBe(true);
  expect(sent.every(({ to }) => to.port >= 1_024 && to.port <= 65_535)).toBe(true);
});

describe('an answer to a volley', () => {
  const volley = volleyOf(fromSockets(1, at(PEER, 5_000), 1, 0));
  const { datagram } = run(volley, 10)[0]!;
  const answer = (check: Uint8Array, key: Uint8Array) => encodeCheckAnswer(check, at('198.51.100.1', 1), key, crypto);

  test("is accepted under the peer's key with the volley's transaction", () => {
    expect(volley.isAnswered(answer(datagram, peerKeys.key))).toBe(true);
  });

  test('is refused under another key, of another volley, and when it is the check itself', () => {
    const other = run(volleyOf(fromSockets(1, at(PEER, 5_000), 1, 0)), 10)[0]!;
    expect(volley.isAnswered(answer(datagram, new Uint8Array(16)))).toBe(false);
    expect(volley.isAnswered(answer(other.datagram, peerKeys.key))).toBe(false);
    expect(volley.isAnswered(datagram)).toBe(false);
    expect(volley.isAnswered(new Uint8Array(0))).toBe(false);
  });
});
