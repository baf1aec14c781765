/** One timer and one look at the network for all searches of a client. */
import { expect, test } from 'vitest';
import { PlainHost } from '../../../bench/nat/plain-host.ts';
import { clientLimits, HostBudget } from '../../../protocol/rendezvous/index.ts';
import { LocalEnd, Searches } from '../../../transport/rendezvous/index.ts';
import { Simulation } from '../../../transport/sim/index.ts';

const NEVER = Number.POSITIVE_INFINITY;

test('each is woken at its time and at no other, and told of another network, until it is removed', async () => {
  const simulation = new Simulation();
  const environment = simulation.host('client', { addresses: ['198.51.100.1/24'] });
  const end = new LocalEnd(new PlainHost(environment, 0), { mapsPort: false });
  const { clock, log } = environment;
  const shared = new Searches({ end, budget: new HostBudget(clientLimits), clock, log });
  const began = clock.now();
  const woken: string[] = [];
  const search = (name: string, ...times: number[]) => {
    const each = {
      wakeAt: began + times.shift()!,
      wake: () => {
        woken.push(`${name} ${clock.now() - began}`);
        each.wakeAt = began + (times.shift() ?? NEVER);
      },
      networkChanged: () => void woken.push(`${name} moved`),
    };
    shared.add(each);
    return each;
  };
  const a = search('a', 700, 900);
  const b = search('b', 300, 5_000);
  const c = search('c', NEVER);
  await simulation.run(1_000);
  expect(woken.splice(0)).toEqual(['b 300', 'a 700', 'a 900']);
  shared.remove(b);
  c.wakeAt = began + 2_000;
  shared.arm(c);
  await simulation.run(9_000);
  expect(woken.splice(0)).toEqual(['c 2000']);
  Object.assign(environment.network, { interfaces: () => [{ name: 'other', addresses: ['203.0.113.9/24'], kind: 'default' }] });
  await simulation.run(4_000);
  expect(woken.splice(0)).toEqual(['a moved', 'c moved']);
  for (const each of [a, c]) shared.remove(each);
  // Nothing is left to happen: no timer, and no look at the network.
  expect(await simulation.run(() => false)).toBe(false);
});
