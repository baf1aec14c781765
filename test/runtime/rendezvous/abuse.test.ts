/** The cost to a device of an attacker that begins rounds without end (docs/transport.md §7). */
import { expect, test } from 'vitest';
import { encodeRendezvousUpdate, type RendezvousOffer } from '../../../protocol/control/index.ts';
import { answerPort } from '../../../protocol/stun/index.ts';
import { Random, type SimulatedPacket } from '../../../testing/index.ts';
import { CONNECT_PACKETS } from '../../support/connect-packets.ts';
import { ProductFixture } from '../../support/fixture/products.ts';
import { homeOf, type NatKind } from '../../support/nat-kinds.ts';
import { begin, CREATED, offerOf } from './hostile.ts';

const random = new Random('abuse');

const offer = (overrides: Partial<RendezvousOffer>): Uint8Array => offerOf(random, overrides);

async function attacked(kind: NatKind) {
  const fixture = new ProductFixture({ link: { delay: 5 } });
  await fixture.station();
  const { host } = homeOf(fixture.sim, kind, 'board', 1);
  const under = await fixture.attached({ environment: host });
  const peer = await fixture.raw.opened();
  const session = await peer.reach({ direct: true });
  const packets: SimulatedPacket[] = [];
  fixture.sim.onTrace = (packet, fate) => {
    if (fate !== 'passed') packets.push(packet);
  };
  return { fixture, under, peer, session, packets };
}

/** STUN requests without a round that have left the device. */
function asked(packets: readonly SimulatedPacket[]): readonly SimulatedPacket[] {
  return packets.filter(({ from, data }) => from === 'board' && answerPort(data, 7) === 7);
}

test('STUN ports are asked at most ten times at once for unknown clients and ten times a minute, however many rounds they begin', {
  tags: ['slow'],
}, async () => {
  // A NAT with sequential ports is asked for its last one at each round.
  const { fixture, session, packets } = await attacked('sequential');
  const began = fixture.sim.now;
  let round = 0;
  while (fixture.sim.now - began < 30_000) {
    expect(await fixture.settle(begin(session, offer({ round: ++round })))).toBe(CREATED);
    await fixture.sim.run(900);
  }
  expect(round).toBeGreaterThan(30);
  // One from the main socket and three from further ones each time.
  expect(asked(packets).length).toBeGreaterThan(0);
  expect(asked(packets).length).toBeLessThanOrEqual(4 * (10 + 5));
});

test('rounds that begin at the same time share the answers of STUN ports', { tags: ['slow'] }, async () => {
  const { fixture, session, packets } = await attacked('port');
  fixture.sim.onPacket = ({ data }) => (answerPort(data, 7) === 7 ? 'drop' : undefined);
  const began = fixture.sim.now;
  for (let round = 1; fixture.sim.now - began < 500; round++) expect(await fixture.settle(begin(session, offer({ round })))).toBe(CREATED);
  await fixture.sim.run(2_000);
  // One port, asked three times.
  expect(asked(packets)).toHaveLength(3);
});

test('a round that ends at the device ends its observation, so that endless rounds use no capacity of other requests', {
  tags: ['slow'],
}, async () => {
  const { fixture, session } = await attacked('port');
  for (let round = 1; round <= 100; round++) expect(await fixture.settle(begin(session, offer({ round })))).toBe(CREATED);
  const ended: unknown[] = [];
  const request = { method: 'POST', path: '/p2p/rendezvous', contentFormat: 60, payload: offer({ round: 101 }) } as const;
  session.observe(
    request,
    () => {},
    (error) => ended.push(error),
  );
  await fixture.sim.run(29_000);
  expect(ended).toEqual([]);
  await fixture.sim.run(2_000);
  expect(ended).toEqual([null]);
});

test('rounds whose offers arrive together begin one after the other, and the last one stays', { tags: ['slow'] }, async () => {
  const { fixture, session } = await attacked('port');
  expect(await fixture.settle(begin(session, offer({ round: 1 })))).toBe(CREATED);
  const statuses = Promise.all([2, 3, 4].map((round) => begin(session, offer({ round }))));
  expect(await fixture.settle(statuses)).toEqual([CREATED, CREATED, CREATED]);
  const update = (round: number): Promise<number> => {
    const payload = encodeRendezvousUpdate({ round, number: 2, candidates: [], opened: 0 });
    return fixture
      .settle(session.request({ method: 'PUT', path: '/p2p/rendezvous', contentFormat: 60, payload }))
      .then(({ status }) => status);
  };
  expect([await update(3), await update(4)]).toEqual([404, 204]);
});

test('a connect costs the attacker two packets, whose lengths are the yardstick of floods', async () => {
  const fixture = await ProductFixture.withStation();
  await fixture.attached();
  const stranger = await fixture.raw.opened();
  await fixture.sim.run(1_000);
  const sent: number[] = [];
  fixture.sim.onTrace = ({ from, data }, fate) => {
    if (fate === 'passed' && from === stranger.environment.name) sent.push(data.length);
  };
  await stranger.reach({ direct: true });
  await fixture.sim.run(20);
  expect(sent).toEqual(CONNECT_PACKETS);
});
