/**
 * Cases of the QUIC interop runner in which the client's address changes during a transfer, with its parameters and
 * names.
 *
 * @module-tag slow
 */
import { hex } from '@scure/base';
import { describe, expect, it } from 'vitest';
import { ID_LENGTH, PacketType } from '../../../protocol/packet/index.ts';
import { ETHERNET_PAYLOAD } from '../../../protocol/path.ts';
import type { SimulatedPacket } from '../../../testing/index.ts';
import { seeds } from '../../support/tiered.ts';
import { PORT } from '../stack/support.ts';
import { closesCleanly, download, downloadAll, expectNoFailure, type FileBench, fileBench, MB, simpleP2p } from './support.ts';

/** The runner's `--first-rebind=1s --rebind-freq=5s`. */
const FIRST_REBIND = 1000;
const REBIND_FREQUENCY = 5000;

/** Deadline for the new path's response to the device's challenge, ms. */
const VALIDATED_AFTER = 1000;

/**
 * Counts the rebindings of the client, and how many of them gave the device another path that is validated a moment
 * later.
 */
function rebindAgainAndAgain(
  { simulation, device, clientHost }: FileBench,
  what: 'port' | 'address',
): { count: number; validated: number } {
  const rebound = { count: 0, validated: 0 };
  const rebind = (): void => {
    const [accepted] = [...device.sessions];
    const before = accepted!.paths.active;
    simulation.rebind(clientHost, what);
    clientHost.clock.schedule(VALIDATED_AFTER, () => {
      rebound.count++;
      const { paths } = accepted!;
      if (paths.active !== before && paths.stats(paths.active)?.validated === true) rebound.validated++;
    });
    clientHost.clock.schedule(REBIND_FREQUENCY, rebind);
  };
  clientHost.clock.schedule(FIRST_REBIND, rebind);
  return rebound;
}

describe('interop: the address changes', () => {
  const cells = [
    ['rebind-port', 'port', 0],
    ['rebind-addr', 'address', 0],
    ['rebind-port with 2 % loss', 'port', 0.02],
    ['rebind-addr with 2 % loss', 'address', 0.02],
  ] as const;

  // the same course at a quarter of the runner's rate and file
  it.each([cells[0], cells[3]])('%s, slowly', (_, what, loss) => rebinds(what, loss, 0.25, seeds(1, 1)));
  it.each(cells)('%s', (_, what, loss) => rebinds(what, loss, 1, seeds(1, 4)));

  async function rebinds(what: 'port' | 'address', loss: number, share: number, of: readonly number[]): Promise<void> {
    for (const seed of of) {
      const here = await fileBench({ seed, link: { ...simpleP2p, rate: 10e6 * share, loss }, files: [10 * MB * share] });
      const rebound = rebindAgainAndAgain(here, what);
      const from = here.simulation.now;
      await here.simulation.settle(downloadAll(here));
      const time = here.simulation.now - from;
      expect(rebound.count).toBeGreaterThanOrEqual(2);
      expect(rebound.validated).toBe(rebound.count);
      expect(time).toBeLessThan(12_000);
      expect(here.device.sessions.size).toBe(1);
      expectNoFailure(here);
    }
  }
});

describe('a warm path', () => {
  const name = 'takes over in the middle of a transfer when the active one stops answering (seed %d)';
  it.each(seeds(1, 1))(name, takesOver);
  it.each(seeds(2, 10))(name, takesOver);

  async function takesOver(seed: number): Promise<void> {
    const here = await fileBench({ seed, files: [2 * MB] });
    const { simulation, client, deviceHost } = here;
    const session = await simulation.settle(here.connect({ migration: true }));
    await simulation.settle(session.request({ method: 'POST', path: '/echo' }));
    const [accepted] = [...here.device.sessions];
    const other = client.sockets.bound[0]!.path(deviceHost.addresses[1]!, PORT);
    expect(session.paths.add(other, { keepInterval: 5000 })).toBe(true);
    await simulation.run(500);
    expect(session.paths.active).not.toBe(other);
    const changes: [string, number][] = [];
    session.on('path', ({ reason }) => changes.push([reason, simulation.now]));
    const dead = simulation.now + 1000;
    simulation.onPacket = ({ source, time }) => (time >= dead && !source.address.includes(':') ? 'drop' : undefined);
    await simulation.settle(download(session, 2 * MB, 0));
    expect(changes.map(([reason]) => reason)).toEqual(['failed-over']);
    expect(changes[0]![1] - dead).toBeLessThan(3000);
    expect([session.paths.active === other, session.paths.type, accepted!.paths.active.address.includes(':')]).toEqual([
      true,
      'DIRECT',
      true,
    ]);
    expectNoFailure(here);
  }
});

describe('interop: the client migrates', () => {
  it('connectionmigration', async () => {
    const here = await fileBench({ files: [2 * MB] });
    const { simulation, client, deviceHost, clientHost } = here;
    const session = await simulation.settle(here.connect({ migration: true }));
    await simulation.settle(session.request({ method: 'POST', path: '/echo' }));
    const [accepted] = [...here.device.sessions];
    const before = session.paths.active;
    const changes: string[] = [];
    session.on('path', ({ reason }) => changes.push(`client ${reason}`));
    accepted!.on('path', ({ reason }) => changes.push(`device ${reason}`));
    clientHost.clock.schedule(1000, () => {
      session.paths.migrate(client.sockets.bound[0]!.path(deviceHost.addresses[1]!, PORT));
    });
    await simulation.settle(download(session, 2 * MB, 0));
    expect(changes).toEqual(['client migrated', 'device followed']);
    expect([session.paths.active.address, session.paths.active === before]).toEqual([deviceHost.addresses[1], false]);
    // packets began small on the new path, and grew again
    expect(accepted!.connection.stats()!.packetSize).toBe(ETHERNET_PAYLOAD);
    // a new id in both directions, and no use of the old ones
    const data = here.sent.filter((packet) => packet.data[0] === PacketType.DATA);
    for (const end of ['client', 'device']) {
      const of = (address: number) => data.filter(({ from, source }) => from === end && source.address.includes(':') === (address === 6));
      const ids = (packets: SimulatedPacket[]) => new Set(packets.map((packet) => hex.encode(packet.data.slice(1, 1 + ID_LENGTH))));
      expect(ids(of(4)).size).toBe(1);
      expect(ids(of(6)).size).toBe(1);
      expect([...ids(of(4))]).not.toEqual([...ids(of(6))]);
    }
    expect(session.connection.paths.all).toEqual([session.paths.active]);
    expect(accepted!.connection.paths.all).toEqual([accepted!.paths.active]);
    await simulation.settle(closesCleanly(here, session));
  });
});
