/**
 * Two hosts behind one NAT that does not hairpin: only addresses of interfaces lead from one to the other.
 *
 * @module-tag slow
 */
import { beforeAll, expect, test } from 'vitest';
import { loadExchange } from '../../../protocol/password/index.ts';
import { ProductFixture } from '../../support/fixture/products.ts';

// Virtual time does not wait for a module.
beforeAll(() => loadExchange());

async function behindOneNat(options: { readonly pinned: boolean }) {
  const fixture = await ProductFixture.withStation();
  const box = fixture.sim.nat('router', { outside: ['198.51.100.7'] });
  const board = fixture.sim.host('board', { addresses: ['192.168.1.5/24'], behind: box });
  const { device } = await fixture.attached({ environment: board });
  const phone = fixture.client(fixture.sim.host('phone', { addresses: ['192.168.1.6/24'], behind: box }));
  const pin = options.pinned ? { DeviceFingerprint: device.deviceFingerprint } : {};
  const connection = fixture.connection({ Local: false, Rendezvous: true, ...pin }, phone);
  await fixture.settle(connection.connect());
  await fixture.sim.run(15_000);
  return { fixture, connection, device };
}

test('a device that offers no addresses to an unknown client finds the client that offers its own', async () => {
  const { connection } = await behindOneNat({ pinned: true });
  expect(connection.getType()).toBe('DIRECT');
  expect(connection.paths().paths).toContainEqual(expect.objectContaining({ active: true, over: 'lan', address: '192.168.1.5' }));
  expect(connection.paths().pairs).toContainEqual(expect.objectContaining({ kind: 'peer-reflexive', state: 'answered' }));
});

test('a client without a pin offers no addresses either, and stays relayed', { tags: ['slow'] }, async () => {
  const { connection } = await behindOneNat({ pinned: false });
  expect(connection.getType()).toBe('RELAY');
  expect(connection.paths().whyNotDirect?.code).toBe('LIMITED');
});

test('a password login verifies the device, and the local addresses are offered then', { tags: ['slow'] }, async () => {
  const { fixture, connection, device } = await behindOneNat({ pinned: false });
  device.onPasswordAuthenticationRequest((request) => request.setPassword('secret'));
  await fixture.settle(connection.passwordAuthenticate('anna', 'secret'));
  await fixture.sim.run(() => connection.getType() === 'DIRECT', 2_000);
  expect(connection.paths().paths).toContainEqual(expect.objectContaining({ active: true, over: 'lan' }));
});
