/**
 * Products behind NAT boxes: device and client reach one another through the base station from every kind of home, and
 * again after a reboot of both boxes.
 */
import { expect, it } from 'vitest';
import { ProductFixture } from '../support/fixture/products.ts';
import { homeOf, natKinds } from '../support/nat-kinds.ts';

const cells = natKinds.map((kind, i) => ({ kind, other: natKinds[(i + 4) % natKinds.length]! }));

/** A device without a box, one with a port for each remote, and one without UDP. */
const isQuick = (_: unknown, i: number): boolean => [0, 4, 8].includes(i);
const name = 'relays between a device behind $kind and a client behind $other';

it.each(cells.filter(isQuick))(name, relays);
it.each(cells.filter((cell, i) => !isQuick(cell, i)))(name, { tags: ['slow'] }, relays);

async function relays({ kind, other }: (typeof cells)[number]): Promise<void> {
  const fixture = await ProductFixture.withStation();
  const homes = [homeOf(fixture.sim, kind, 'device', 1), homeOf(fixture.sim, other, 'client', 2)] as const;
  const { device } = await fixture.attached({ environment: homes[0].host });
  device.addCoapResource('GET', '/hello', () => ({ status: 205 }));
  device.onAuthorizationRequest(() => true);
  const connection = fixture.connection({}, fixture.client(homes[1].host));
  await fixture.settle(connection.connect());
  const status = async () => (await fixture.settle(connection.get('/hello'))).status;
  expect(await status()).toBe(205);
  for (const box of homes.flatMap(({ boxes }) => boxes)) box.forget();
  expect(await status()).toBe(205);
}
