/**
 * The whole stack in cells of the matrix of direct paths: products behind the boxes, relayed first, and direct in the
 * end where the decisions say so (nat-matrix.test.ts). A concurrent transfer loses no byte.
 *
 * @module-tag slow
 */
import { describe, expect, it } from 'vitest';
import { type Cell, cells, expected, nameOf, reasonOf } from '../../../bench/nat/matrix.ts';
import type { Connection } from '../../../client/node.ts';
import type { DeviceUnderTest } from '../../support/fixture/devices-and-clients.ts';
import { ProductFixture } from '../../support/fixture/products.ts';
import { homeOf } from '../../support/nat-kinds.ts';

/** One way between two hosts, ms. */
const DELAY = 25;
/** ms in which a direct path has to be there. */
const LIMIT = 15_000;
const PORT = 7;
const PIECE = 2_000;
/** ms from one piece of the transfer to the next. */
const PAUSE = 40;

/** The special kinds, and one that stays relayed. */
const QUICK = ['port × port', 'sequential × port', 'v6-firewall × v6-firewall', 'port × blocked'];
const isQuick = (cell: Cell): boolean => QUICK.includes(nameOf(cell));

async function upgraded({ client, device }: Cell) {
  const fixture = new ProductFixture({ link: { delay: DELAY }, seed: 2 });
  await fixture.station();
  const homes = [homeOf(fixture.sim, client, 'home of the client', 1), homeOf(fixture.sim, device, 'home of the device', 2)] as const;
  const under = await fixture.attached({ environment: homes[1].host });
  const options = { Rendezvous: true, Local: false, DeviceFingerprint: under.device.deviceFingerprint };
  const connection = fixture.connection(options, fixture.client(homes[0].host));
  const types: string[] = [];
  connection.on('path', () => types.push(connection.getType()));
  const atDevice: string[] = [];
  under.device.onConnectionEvent((each, event) => void (event === 'CHANNEL_CHANGED' && atDevice.push(each.type)));
  await fixture.settle(connection.connect());
  return { fixture, under, connection, types, atDevice };
}

/** Bytes through an echo at the device, until `done`. @returns sent and received bytes */
async function transfer(
  fixture: ProductFixture,
  { device }: DeviceUnderTest,
  connection: Connection,
  done: () => boolean,
): Promise<{ sent: number; wrong: number; received: number }> {
  device.addStreamListener(PORT, async (incoming) => {
    const stream = incoming.accept();
    for await (const bytes of stream.readable) await stream.write(bytes);
    await stream.close();
  });
  const stream = connection.openStream(PORT);
  await fixture.settle(stream.opened);
  const result = { sent: 0, wrong: 0, received: 0 };
  const reading = (async (): Promise<void> => {
    for await (const bytes of stream.readable) for (const byte of bytes) if (byte !== valueAt(result.received++)) result.wrong++;
  })();
  while (!done()) {
    await fixture.settle(stream.write(Uint8Array.from({ length: PIECE }, (_, i) => valueAt(result.sent + i))));
    result.sent += PIECE;
    await fixture.sim.run(PAUSE);
  }
  await fixture.settle(stream.close());
  await fixture.settle(reading);
  return result;
}

function valueAt(position: number): number {
  return (position * 31 + (position >> 8)) & 0xff;
}

describe('the whole stack', () => {
  async function becomesDirect(_: string, cell: Cell): Promise<void> {
    const { fixture, under, connection, types, atDevice } = await upgraded(cell);
    expect(connection.getType()).toBe('RELAY');
    const from = fixture.sim.now;
    const isDirect = expected(cell).atMost !== 0;
    const isOver = (): boolean => {
      // One failed attempt is enough where none can succeed.
      const hasFailed = !isDirect && connection.paths().nextAttempt !== null;
      return connection.getType() === 'DIRECT' || hasFailed || fixture.sim.now - from > LIMIT;
    };
    const { sent, received, wrong } = await transfer(fixture, under, connection, isOver);
    expect([received, wrong]).toEqual([sent, 0]);
    expect(connection.getType()).toBe(isDirect ? 'DIRECT' : 'RELAY');
    expect([types, atDevice]).toEqual(isDirect ? [['DIRECT'], ['DIRECT']] : [[], []]);
    expect(connection.paths().whyNotDirect).toEqual(isDirect ? null : expect.objectContaining({ code: reasonOf(cell) }));
  }
  const named = cells.map((cell) => [nameOf(cell), cell] as const);
  it.each(named.filter(([, cell]) => isQuick(cell)))('%s', becomesDirect);
  it.each(named.filter(([, cell]) => !isQuick(cell)))('%s', { tags: ['slow'] }, becomesDirect);
});
