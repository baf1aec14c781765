/**
 * Two homes of one provider, with a single router between their boxes, which accept UDP from outside themselves: an
 * opener beyond that router would make the other box assign the end behind it another port.
 */
import { beforeAll, expect, it } from 'vitest';
import type { Child } from '../../../bench/processes/parent.ts';
import type { NatKind } from './nat-boxes.ts';
import { type LabDevice, labWithProducts, type View } from './products.ts';

const KINDS: readonly NatKind[] = ['claiming', 'port', 'address'];
const LIMIT = 15_000;

labWithProducts('neighbours', { keys: KINDS.length }, (lab) => {
  let device: LabDevice;
  const clients = new Map<NatKind, Child>();

  beforeAll(async () => {
    const { internet, products } = lab;
    device = await products.device(internet.home('device', 'claiming').host, 'de-near', '--no-mdns');
    for (const kind of KINDS) clients.set(kind, products.client(internet.home('device', kind).host));
  });

  it.each(KINDS)('a client behind %s becomes direct', async (name) => {
    const client = clients.get(name)!;
    const { pem } = lab.products.keys[KINDS.indexOf(name)]!;
    const begun = await client.call<View>('connect', { name, options: { ...device.options, PrivateKey: pem } });
    expect(begun.type).toBe('RELAY');
    expect(await client.call<View>('settled', { name, limit: LIMIT })).toMatchObject({ type: 'DIRECT', over: 'ipv4' });
    await client.call('request', { name });
    await client.call('close', { name });
  });
});
