/** A connection that ended before its search began. */
import { expect, test } from 'vitest';
import { PlainHost } from '../../../bench/nat/plain-host.ts';
import { Signalling } from '../../../bench/nat/signalling.ts';
import { clientLimits, HostBudget } from '../../../protocol/rendezvous/index.ts';
import { DirectSearch, LocalEnd, Searches } from '../../../runtime/rendezvous/index.ts';
import { Simulation } from '../../../testing/index.ts';
import { noKeepAlive } from '../../support/no-keep-alive.ts';

test('leaves no timer and no listener behind', async () => {
  const simulation = new Simulation();
  const environment = simulation.host('client');
  const client = new PlainHost(environment, 0);
  const { clock, log } = environment;
  const open = new Signalling({ client, clock, log, delay: 10 });
  const ended = Object.create(open, { isOpen: { value: false } }) as Signalling;
  let listeners = 0;
  Object.defineProperty(ended, 'on', {
    value: () => {
      listeners++;
      return () => listeners--;
    },
  });
  Object.defineProperties(ended, { active: { value: open.active }, type: { value: 'RELAY' } });
  const end = new LocalEnd(client, { mapsPort: false });
  const shared = new Searches(end, new HostBudget(clientLimits), { clock, log });
  const search = new DirectSearch({ session: ended, shared, kind: { hardNat: true, ...noKeepAlive, stationOf: () => null } });
  expect(await simulation.run(() => false)).toBe(false);
  expect(listeners).toBe(0);
  search.stop();
});
