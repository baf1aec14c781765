/**
 * Two homes of one provider, with a single router between their boxes, which take UDP from outside for themselves: an opener that went further than that router
 * would have the other box give the end behind it another port.
 */
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Child } from '../../../bench/processes/parent.ts';
import { endProcesses } from '../../support/process.ts';
import { Internet } from './internet.ts';
import { labWithNat } from './lab.ts';
import type { NatKind } from './nat-boxes.ts';
import { type LabDevice, Products, type View } from './products.ts';

const KINDS: readonly NatKind[] = ['claiming', 'port', 'address'];
const LIMIT = 15_000;

labWithNat('neighbours', () => {
  let internet: Internet;
  let products: Products;
  let device: LabDevice;
  const clients = new Map<NatKind, Child>();

  beforeAll(async () => {
    internet = new Internet();
    products = new Products(KINDS.length);
    await products.startStation(internet.core);
    device = await products.device(internet.home('device', 'claiming').host, 'de-near', '--no-mdns');
    for (const kind of KINDS) clients.set(kind, products.client(internet.home('device', kind).host));
  });

  afterAll(async () => {
    await products?.close();
    await endProcesses();
    internet?.remove();
  });

  it.each(KINDS)('a client behind %s becomes direct', async (name) => {
    const client = clients.get(name)!;
    const { pem } = products.keys[KINDS.indexOf(name)]!;
    const begun = await client.call<View>('connect', { name, options: { ...device.options, PrivateKey: pem } });
    expect(begun.type).toBe('RELAY');
    expect(await client.call<View>('settled', { name, limit: LIMIT })).toMatchObject({ type: 'DIRECT', over: 'ipv4' });
    await client.call('request', { name });
    await client.call('close', { name });
  });
});
