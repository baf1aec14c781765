/** The event of a session for paths that are probed. */
import { describe, expect, it } from 'vitest';
import type { Session } from '../../../runtime/session/index.ts';
import { acceptedSession, type ConnectedPair, DEVICE_PORT, pair } from './support.ts';

function probes(session: Session): string[] {
  const seen: string[] = [];
  session.on('probed', ({ path, answered, forgotten }) =>
    seen.push(`${path.port}: ${answered ? 'answered' : 'silent'}${forgotten ? ', forgotten' : ''}`),
  );
  return seen;
}

/** A pair whose device has a second port. */
async function withSecondPort(): Promise<ConnectedPair> {
  return pair({ device: { binds: [{ port: DEVICE_PORT }, { port: 7000 }] } });
}

describe('event probed', () => {
  it('reports that an added path has answered', async () => {
    const both = await withSecondPort();
    const seen = probes(both.session);
    expect(both.session.paths.add(both.client.sockets.bound[0]!.path('10.0.0.1', 7000))).toBe(true);
    await both.simulation.run(1000);
    expect(seen).toEqual(['7000: answered']);
  });

  it('reports that an added path is silent, and that it answers later', async () => {
    const both = await pair();
    const seen = probes(both.session);
    const path = both.client.sockets.bound[0]!.path('10.0.0.1', 7000);
    expect(both.session.paths.add(path, { keepInterval: 1000 })).toBe(true);
    await both.simulation.run(10_000);
    expect(new Set(seen)).toEqual(new Set(['7000: silent']));
    expect(both.session.connection.paths.all).toContain(path);
    await both.simulation.settle(both.device.sockets.bind({ port: 7000 }));
    await both.simulation.run(10_000);
    expect(seen.at(-1)).toBe('7000: answered');
  });

  it("reports at the other end that the peer's path answered, and later that it was discarded", async () => {
    const both = await withSecondPort();
    const accepted = await acceptedSession(both);
    const seen = probes(accepted);
    const socket = await both.simulation.settle(both.client.sockets.bind({ port: 6000 }));
    const path = socket.path('10.0.0.1', 7000);
    both.session.paths.add(path);
    await both.simulation.run(1000);
    expect(seen).toEqual(['6000: answered']);
    both.session.connection.paths.remove(path);
    await both.simulation.run(120_000);
    expect(seen).toEqual(['6000: answered', '6000: silent, forgotten']);
    expect(accepted.connection.paths.all).toEqual([accepted.paths.active]);
  });

  it('is not emitted by a session that has ended', async () => {
    const both = await withSecondPort();
    const seen = probes(both.session);
    both.session.paths.add(both.client.sockets.bound[0]!.path('10.0.0.1', 7000));
    void both.session.close();
    await both.simulation.run(1000);
    expect([seen, both.session.paths.add(both.client.sockets.bound[0]!.path('10.0.0.1', 7001))]).toEqual([[], false]);
  });
});
