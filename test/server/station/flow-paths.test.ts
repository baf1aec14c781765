/**
 * Datagrams of a stream continue while their connection migrates from a route through a base station to a direct path.
 *
 * @module-tag slow
 */
import { expect, test } from 'vitest';
import { decodeConnectAnswer } from '../../../protocol/control/index.ts';
import { type DatagramFlow, noDatagrams, type Session } from '../../../runtime/session/index.ts';
import { ids } from '../../support/fixture/identifiers.ts';
import { ProductFixture } from '../../support/fixture/products.ts';
import type { RawPeer } from '../../support/fixture/raw-peer.ts';

/** Opens a relayed session that may change its path. */
async function reach(fixture: ProductFixture, device: RawPeer, client: RawPeer): Promise<Session> {
  const prepared = client.host.dials.prepare({ name: `device:${ids.productId}.${ids.deviceId}`, migration: true });
  const answer = decodeConnectAnswer((await client.connect({ initiate: prepared.initiate })).payload);
  if (answer.kind !== 'connected' || answer.respond === undefined) throw new Error('not connected');
  const path = client.host.routes.path(client.channel, answer.route, { resetToken: answer.routeResetToken });
  const session = await fixture.sim.settle(prepared.establish(answer.respond, path));
  await fixture.sim.run(() => device.incoming.length > 0);
  return session;
}

/** The device echoes everything that arrives on any stream. */
function echo(session: Session): void {
  session.onDatagram = (datagram) => session.datagrams.receive(datagram);
  session.onStream = (incoming) => {
    let flow: DatagramFlow | null = null;
    const answer = (payload: Uint8Array): void => queueMicrotask(() => flow?.send(payload));
    flow = session.datagrams.open(incoming.accept().id, answer, noDatagrams());
  };
}

test('datagrams continue over a migration from the route to a direct path', async () => {
  const fixture = await ProductFixture.withStation();
  const device = await fixture.raw.attached();
  const client = await fixture.raw.opened();
  const session = await reach(fixture, device, client);
  echo(device.incoming[0]!);
  session.onDatagram = (datagram) => session.datagrams.receive(datagram);
  const got: number[] = [];
  const flow = session.datagrams.open(session.streams.open(1).id, (payload) => got.push(payload[0]!), noDatagrams());
  const [address] = device.environment.addresses.filter((each) => !each.includes(':'));
  const direct = client.host.sockets.bound[0]!.path(address!, device.host.sockets.bound[0]!.port);
  expect(session.paths.type).toBe('RELAY');
  for (let i = 0; i < 60; i++) {
    if (i === 30) expect(session.paths.migrate(direct)).toBe(true);
    flow.send(Uint8Array.of(i));
    await fixture.sim.run(50);
  }
  expect([session.paths.type, device.incoming[0]!.paths.type]).toEqual(['DIRECT', 'DIRECT']);
  expect(got).toEqual(Array.from({ length: 60 }, (_, i) => i));
});
