/**
 * Each box of the lab behaves as its name says: checked with plain sockets inside and outside, before any test relies
 * on it.
 */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Child } from '../../../bench/processes/parent.ts';
import type { Namespace } from '../namespaces.ts';
import { Internet, OTHER_ADDRESS, SECOND_ADDRESS, type Side, STATION_ADDRESS, STATION_ADDRESSES_V6 } from './internet.ts';
import { labWithNat, script } from './lab.ts';
import { NAT_KINDS, type NatKind } from './nat-boxes.ts';

/** The expected findings of a probe. */
interface Box {
  readonly outside: string;
  readonly mapping: string;
  readonly ports: string;
  readonly filter: string;
  readonly claims: boolean;
  readonly reaches: boolean;
}

const kept = { mapping: 'independent', ports: 'kept', claims: false, reaches: true };
const port = { ...kept, filter: 'address-port' };
const dependent = { mapping: 'address-port', filter: 'address-port', claims: false, reaches: true };

const EXPECTED: Readonly<Record<NatKind, Omit<Box, 'outside'>>> = {
  open: { ...kept, filter: 'none' },
  'full-cone': { ...kept, filter: 'none' },
  address: { ...kept, filter: 'address' },
  port,
  claiming: { ...port, claims: true },
  sequential: { ...dependent, ports: 'sequential 1' },
  random: { ...dependent, ports: 'random' },
  double: port,
  'v6-firewall': port,
  blocked: { ...port, reaches: false },
};

const PORTS = { p: 7001, q: 7002 };
const [a6, b6] = STATION_ADDRESSES_V6;

labWithNat('the boxes of the lab', () => {
  let internet: Internet;
  const children: Child[] = [];

  function start(namespace: Namespace, name: string): Child {
    const child = new Child(namespace.inside(script(name)));
    children.push(child);
    return child;
  }

  beforeAll(async () => {
    internet = new Internet();
    const addresses = [STATION_ADDRESS, SECOND_ADDRESS, OTHER_ADDRESS, a6, b6];
    await start(internet.core, 'reflector').call('listen', { addresses, ports: Object.values(PORTS) });
  });

  afterAll(async () => {
    await Promise.all(children.map((child) => child.stop()));
    internet?.remove();
  });

  for (const side of ['client', 'device'] as readonly Side[])
    it.concurrent.each([...NAT_KINDS])(`${side}: %s`, async (kind) => {
      const home = internet.home(side, kind);
      const probe = start(home.host, 'probe');
      const place = { a: STATION_ADDRESS, b: SECOND_ADDRESS, c: OTHER_ADDRESS, ...PORTS };
      expect(await probe.call('probe', place)).toEqual({ outside: home.outside, ...EXPECTED[kind] });
      if (kind === 'v6-firewall')
        expect(await probe.call('probe', { a: a6, b: b6, c: b6, ...PORTS })).toMatchObject({
          ...port,
          outside: expect.stringMatching(/^2001:/),
        });
    });
});
