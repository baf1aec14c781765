/**
 * A connection whose flight spans all the packet numbers it can track waits for an acknowledgement; it does not spin.
 *
 * @module-tag slow
 */
import { expect, it } from 'vitest';
import { UNKNOWN_PORT } from '../../bindings/index.ts';
import { forge, reveal } from './forge.ts';
import { Pair } from './pair.ts';

const PING = [0x01];
const PATH_CHALLENGE = 0x1a;
/** Records of a flight (core-as/records/flight.ts). */
const MAX_RECORDS = 30_720;

it('a due challenge waits for the acknowledgement that shortens the flight', () => {
  const pair = new Pair();
  const { connection } = pair.responder;
  pair.intercept = () => null;
  connection.ping();
  pair.settle();
  // Each number that leaves a hole below it is acknowledged at once; our first packet never is.
  let number = 1;
  while (connection.stats().packetsSent <= MAX_RECORDS) {
    pair.inject(forge({ number, frames: PING }), pair.responder);
    pair.settle();
    number += 2;
  }
  connection.receive(forge({ number, frames: PING }), 0, pair.now, UNKNOWN_PORT);
  pair.settle();
  expect(connection.paths.stats(1)?.packetsSent).toBe(0);
  expect(connection.nextTimeout()).toBeGreaterThan(pair.now);
  pair.responder.record = true;
  connection.receive(forge({ number: number + 1, frames: [0x02, 0, 0, 0, 0] }), 0, pair.now, 1);
  pair.settle();
  const [first] = pair.responder.sent;
  expect(reveal(first as Uint8Array, 'responder')?.[0]).toBe(PATH_CHALLENGE);
});
