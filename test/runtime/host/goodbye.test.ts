/** How long a host stays when it leaves. */
import { expect, test } from 'vitest';
import { Goodbye } from '../../../runtime/host/goodbye.ts';
import type { Session } from '../../../runtime/session/index.ts';
import { ManualClock } from '../../support/manual-clock.ts';

test('peers that complete one handshake after the other while it leaves keep it no longer', async () => {
  const clock = new ManualClock();
  const goodbye = new Goodbye(clock, async () => {});
  const session = { connection: { paths: { stats: () => undefined }, path: { kind: 'route' } } } as unknown as Session;
  let hasLeft = false;
  void goodbye.leave([], true).then(() => (hasLeft = true));
  for (let time = 0; time < 100; time += 20) {
    expect(hasLeft).toBe(false);
    goodbye.noteClosed(session);
    clock.pass(20);
    for (let turn = 0; turn < 20; turn++) await undefined;
  }
  expect(hasLeft).toBe(true);
});
