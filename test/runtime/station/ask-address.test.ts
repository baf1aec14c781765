/**
 * An end asks the station on its channel how it sees the end's address: without an answer there is no address.
 *
 * @module-tag slow
 */
import { expect, test } from 'vitest';
import { Router, Status } from '../../../protocol/coap/index.ts';
import { ClientPath, encodeSeenAddress } from '../../../protocol/control/index.ts';
import type { Session } from '../../../runtime/session/index.ts';
import { askAddress } from '../../../runtime/station/index.ts';
import { acceptedSession, pair } from '../session/support.ts';

const ADDRESS = { address: '203.0.113.5', port: 9 };

test('a station with a refusal, an invalid answer or none, and a channel that has ended return nothing', async () => {
  const both = await pair();
  const answers = [
    { status: Status.NOT_FOUND },
    { status: Status.CONTENT },
    { status: Status.CONTENT, payload: Uint8Array.of(0xff) },
    { status: Status.CONTENT, payload: encodeSeenAddress(ADDRESS).slice(0, -1) },
  ];
  (await acceptedSession(both)).router = new Router<Session>().on(
    'GET',
    ClientPath.ADDRESS,
    () => answers.shift() ?? new Promise(() => {}),
  );
  const ask = () => both.simulation.settle(askAddress(both.session, ClientPath.ADDRESS));
  while (answers.length > 0) expect(await ask()).toBeNull();
  const before = both.simulation.now;
  expect(await ask()).toBeNull();
  expect(both.simulation.now - before).toBe(1_000);
  await both.simulation.settle(both.session.close());
  expect([await ask(), both.session.observedAddress]).toEqual([null, null]);
});
