/** A device's channel to its base station: attach, failures and their delays, redirects, restarts. */
import { describe, expect, it } from 'vitest';
import { CloseCode, RemoteError } from '../../../protocol/errors/index.ts';
import { Host } from '../../../runtime/host/index.ts';
import type { Session } from '../../../runtime/session/index.ts';
import { type AttachVerdict, type StationAddress, StationChannel } from '../../../runtime/station/index.ts';
import type { Simulation } from '../../../testing/index.ts';
import { SessionFixture } from '../../support/fixture/sessions.ts';
import { nativeSimulation } from '../../support/simulation.ts';
import { openStation, STATION_PORT } from '../session/support.ts';

type Verdict = (session: Session, context: { station: StationAddress; redirects: number }) => AttachVerdict | Promise<AttachVerdict>;

const attached = (): AttachVerdict => ({ kind: 'attached' });

/** A device whose channel leads to `station`; the test decides each attach. */
async function device(simulation: Simulation, station: StationAddress, verdict: Verdict) {
  const raw = new SessionFixture({ sim: simulation });
  const { environment, host } = await raw.client({ machine: 'device', addresses: ['10.0.0.1/24'] });
  const events: { at: number; event: string; detail?: unknown }[] = [];
  const attaches: { host: string; redirects: number }[] = [];
  const channel = new StationChannel({
    host,
    station,
    attach: async (session, context) => {
      attaches.push({ host: context.station.host, redirects: context.redirects });
      return verdict(session, context);
    },
  });
  channel.on('connected', () => events.push({ at: simulation.now, event: 'connected' }));
  channel.on('disconnected', (error) => events.push({ at: simulation.now, event: 'disconnected', detail: error?.code }));
  channel.on('failed', ({ error, delay, refused }) =>
    events.push({ at: simulation.now, event: refused ? 'refused' : 'failed', detail: [error.code, delay] }),
  );
  return { environment, host, channel, events, attaches, names: () => events.map(({ event }) => event) };
}

/** The same, with a station of its own. */
async function scene(
  verdict: Verdict,
  { address = {}, options = {} }: { address?: Partial<StationAddress>; options?: Parameters<typeof openStation>[3] } = {},
) {
  const simulation = nativeSimulation();
  const station = await openStation(simulation, 'station', '10.0.0.9', options);
  return { simulation, station, ...(await device(simulation, { ...station.address, ...address }, verdict)) };
}

describe('attach', () => {
  it('connects with the pin and stays', async () => {
    const { simulation, station, channel, names, attaches } = await scene(attached);
    channel.start();
    channel.start();
    await simulation.run(60_000);
    expect(names()).toEqual(['connected']);
    expect(attaches).toEqual([{ host: 'station', redirects: 0 }]);
    expect(channel.session?.peer.fingerprint).toBe(station.address.fingerprint);
    expect(channel.session?.peer.verified).toBe('pinned');
    expect(station.host.sessions.size).toBe(1);
  });

  it('stop detaches and start attaches again', { tags: ['slow'] }, async () => {
    const { simulation, station, channel, names } = await scene(attached);
    channel.start();
    await simulation.run(1000);
    await simulation.settle(channel.stop());
    await simulation.run(1000);
    expect(channel.session).toBeNull();
    expect(station.host.sessions.size).toBe(0);
    channel.start();
    await simulation.run(1000);
    expect(names()).toEqual(['connected', 'disconnected', 'connected']);
  });

  it('stop while it dials, attaches and waits leaves nothing behind', async () => {
    const { simulation, station, channel, names, host, attaches } = await scene(() => new Promise(() => {}));
    channel.start();
    await simulation.run(2);
    await simulation.settle(channel.stop());
    channel.start();
    await simulation.run(1000); // now attaching, which never ends
    expect(attaches.length).toBe(1);
    await simulation.settle(channel.stop());
    station.environment.stop();
    channel.start();
    await simulation.run(() => names().includes('failed'), 100_000);
    await simulation.settle(channel.stop());
    const events = names().length;
    await simulation.run(100_000);
    expect(names().length).toBe(events);
    expect(host.sessions.size).toBe(0);
  });

  it('an attach that never answers is abandoned after 30 s, one that throws at once', async () => {
    let calls = 0;
    const { simulation, channel, events } = await scene(() => {
      calls++;
      if (calls === 1) return new Promise(() => {});
      throw new Error('mine');
    });
    channel.start();
    await simulation.run(() => events.length === 2);
    expect(events[0]).toMatchObject({ event: 'failed', detail: ['TIMEOUT', expect.any(Number)] });
    expect(events[0]!.at).toBeGreaterThanOrEqual(30_000);
    expect(events[1]).toMatchObject({ event: 'failed', detail: ['UNKNOWN', expect.any(Number)] });
  });
});

describe('failures', () => {
  it('an unreachable station is tried again with a growing, jittered delay of at most 30 s', async () => {
    const simulation = nativeSimulation();
    const station: StationAddress = { host: '10.0.0.9', port: STATION_PORT, fingerprint: 'ab'.repeat(32) };
    const { channel, events } = await device(simulation, station, attached);
    channel.start();
    await simulation.run(600_000);
    const delays = events.map(({ detail }) => (detail as [string, number])[1]);
    expect(events.every(({ event, detail }) => event === 'failed' && (detail as string[])[0] === 'CONNECTION_REFUSED')).toBe(true);
    expect(delays.length).toBeGreaterThan(15);
    for (const [i, delay] of delays.entries()) expect(delay).toBeLessThanOrEqual(Math.min(30_000, 250 * 2 ** i));
    expect(Math.max(...delays)).toBeGreaterThan(10_000);
    // Six seconds of dialing, then the delay.
    for (let i = 1; i < events.length; i++) expect(events[i]!.at - events[i - 1]!.at).toBeCloseTo(6000 + delays[i - 1]!, 0);
  });

  it('an attempt that waits is made at once when it is hurried, and delays start again', async () => {
    const simulation = nativeSimulation();
    const station: StationAddress = { host: '10.0.0.9', port: STATION_PORT, fingerprint: 'ab'.repeat(32) };
    const { channel, events, host } = await device(simulation, station, attached);
    channel.hurry();
    channel.start();
    await simulation.run(120_000);
    const { at, detail } = events.at(-1) as { at: number; detail: [string, number] };
    expect(simulation.now - at).toBeLessThan(detail[1]);
    channel.hurry();
    channel.hurry();
    const hurried = simulation.now;
    await simulation.run(6_001);
    expect(events.at(-1)!.at).toBeCloseTo(hurried + 6_000, 0);
    expect((events.at(-1)!.detail as [string, number])[1]).toBeLessThanOrEqual(250);
    await simulation.settle(channel.stop());
    await simulation.settle(host.close());
  });

  it.each(['an attach that held 10 s', 'stop and start'])('after %s, delays start again', async (what) => {
    let verdict: AttachVerdict = { kind: 'retry', error: new RemoteError('TIMEOUT', 'busy') };
    const { simulation, station, channel, events } = await scene(() => verdict);
    const delays = (): number[] => events.filter(({ event }) => event === 'failed').map(({ detail }) => (detail as [string, number])[1]);
    channel.start();
    await simulation.run(() => delays().length === 12, 600_000);
    if (what === 'stop and start') {
      await simulation.settle(channel.stop());
      channel.start();
    } else {
      const busy = verdict;
      verdict = attached();
      await simulation.run(() => channel.session !== null, 60_000);
      await simulation.run(10_000);
      verdict = busy;
      for (const session of station.host.sessions) void session.close();
    }
    await simulation.run(() => delays().length === 13, 60_000);
    expect(delays()[12]).toBeLessThanOrEqual(250);
  });

  it('a refusal is not hurried', async () => {
    const { simulation, channel, attaches } = await scene(() => ({
      kind: 'refused',
      error: new RemoteError('UNKNOWN_FINGERPRINT', 'no'),
    }));
    channel.start();
    await simulation.run(1_000);
    channel.hurry();
    await simulation.run(5_000);
    expect(attaches.length).toBe(1);
  });

  it('a name that does not resolve is DNS', async () => {
    const simulation = nativeSimulation();
    const { channel, events } = await device(simulation, { host: 'nowhere', port: 1, fingerprint: 'ab'.repeat(32) }, attached);
    channel.start();
    await simulation.run(() => events.length > 0);
    expect(events[0]).toMatchObject({ event: 'failed', detail: ['DNS', expect.any(Number)] });
  });

  it('another key than the pin is tried again slowly: 10 s … 1 h', async () => {
    const { simulation, channel, events, attaches } = await scene(attached, { address: { fingerprint: 'ab'.repeat(32) } });
    channel.start();
    await simulation.run(5 * 3_600_000);
    const delays = events.map(({ detail }) => (detail as [string, number])[1]);
    expect(attaches).toEqual([]);
    expect(events.every(({ event, detail }) => event === 'refused' && (detail as string[])[0] === 'FINGERPRINT_MISMATCH')).toBe(true);
    for (const [i, delay] of delays.entries()) {
      const least = Math.min(3_600_000, 10_000 * 2 ** i);
      expect(delay).toBeGreaterThanOrEqual(least);
      expect(delay).toBeLessThanOrEqual(Math.min(3_600_000, least * 1.25));
    }
    expect(delays.length).toBeGreaterThan(9);
  });

  it('a refusal waits slowly, a retry-after is honoured', async () => {
    const simulation = nativeSimulation();
    const station = await openStation(simulation, 'station', '10.0.0.9');
    const error = new RemoteError('UNKNOWN_FINGERPRINT', 'who are you');
    const verdicts: AttachVerdict[] = [
      { kind: 'refused', error },
      { kind: 'retry', error: new RemoteError('TOO_MANY_REQUESTS', 'later'), after: 20_000 },
      { kind: 'attached' },
    ];
    const { channel, events } = await device(simulation, station.address, () => verdicts.shift()!);
    channel.start();
    await simulation.run(() => events.length === 3);
    expect(events.map(({ event }) => event)).toEqual(['refused', 'failed', 'connected']);
    const [refused, retried, connected] = events.map(({ at }) => at);
    expect(retried! - refused!).toBeGreaterThanOrEqual(10_000);
    expect(connected! - retried!).toBeGreaterThanOrEqual(20_000);
    expect(connected! - retried!).toBeLessThan(21_000);
  });

  it('a station that closes while we attach is tried again', async () => {
    const simulation = nativeSimulation();
    const station = await openStation(simulation, 'station', '10.0.0.9', {
      onSession: (session) => void session.close(CloseCode.SHUTDOWN),
    });
    const { channel, names } = await device(simulation, station.address, () => new Promise(() => {}));
    channel.start();
    await simulation.run(2000);
    expect(names().length).toBeGreaterThan(2);
    expect(new Set(names())).toEqual(new Set(['failed']));
  });
});

describe('redirects', () => {
  it('are followed with the pin of the target, and begin at the first station again', async () => {
    const simulation = nativeSimulation();
    const stations = await Promise.all(['one', 'two', 'three'].map((name, i) => openStationLater(simulation, name, `10.0.0.${i + 9}`)));
    const { channel, attaches, names } = await device(simulation, stations[0]!.address, (_, { redirects }) =>
      redirects < 2 ? { kind: 'redirect', station: stations[redirects + 1]!.address } : { kind: 'attached' },
    );
    channel.start();
    await simulation.run(20_000);
    expect(attaches.map(({ host }) => host)).toEqual(['one', 'two', 'three']);
    expect(stations.map(({ host }) => host.sessions.size)).toEqual([0, 0, 1]);
    await simulation.settle(stations[2]!.host.close());
    await simulation.run(3000);
    expect(names()).toEqual(['connected', 'disconnected']);
    expect(attaches.slice(3).map(({ host }) => host)).toEqual(['one', 'two']);
  });

  it('more than five in a row fail, and the next attempt starts again', { tags: ['slow'] }, async () => {
    const simulation = nativeSimulation();
    const [one, two] = [await openStation(simulation, 'one', '10.0.0.9'), await openStation(simulation, 'two', '10.0.0.10')];
    const { channel, attaches, events } = await device(simulation, one.address, (_, { station }) => ({
      kind: 'redirect',
      station: station.host === 'one' ? two.address : one.address,
    }));
    channel.start();
    await simulation.run(() => events.length === 1);
    expect(events[0]).toMatchObject({ event: 'failed', detail: ['BAD_RESPONSE', expect.any(Number)] });
    expect(attaches.map(({ redirects }) => redirects)).toEqual([0, 1, 2, 3, 4, 5]);
    await simulation.run(() => attaches.length === 7);
    expect(attaches[6]).toEqual({ host: 'one', redirects: 0 });
  });

  it('to a station with another key fail', async () => {
    const simulation = nativeSimulation();
    const [one, two] = [await openStation(simulation, 'one', '10.0.0.9'), await openStation(simulation, 'two', '10.0.0.10')];
    const { channel, events } = await device(simulation, one.address, () => ({
      kind: 'redirect',
      station: { ...two.address, fingerprint: one.address.fingerprint },
    }));
    channel.start();
    await simulation.run(() => events.length === 1);
    expect(events[0]!.detail).toEqual(['FINGERPRINT_MISMATCH', expect.any(Number)]);
  });
});

/** Like openStation, for use within Promise.all: a simulation settles one promise at a time. */
async function openStationLater(simulation: Simulation, name: string, address: string) {
  const environment = simulation.host(name, { addresses: [`${address}/24`] });
  const identity = environment.crypto.generateKey();
  const host = await Host.open(environment, { identity, binds: [{ port: STATION_PORT }], responder: () => ['station'] });
  return { environment, host, address: { host: name, port: STATION_PORT, fingerprint: host.fingerprint } };
}

describe('a station that restarts', () => {
  const resetSecret = new Uint8Array(32).fill(3);

  async function restart(simulation: Simulation, station: Awaited<ReturnType<typeof openStation>>) {
    return openStation(simulation, 'station', '10.0.0.9', { identity: station.identity, resetSecret });
  }

  it('after a shutdown is followed at once', async () => {
    const { simulation, station, channel, events } = await scene(attached, { address: { host: '10.0.0.9' }, options: { resetSecret } });
    channel.start();
    await simulation.run(30_000);
    await simulation.settle(station.host.close());
    station.environment.stop();
    await simulation.run(1000);
    await restart(simulation, station);
    const back = simulation.now;
    await simulation.run(() => events.length === 3);
    expect(events.map(({ event }) => event)).toEqual(['connected', 'disconnected', 'connected']);
    expect(events[1]!.detail).toBe('CLOSED');
    expect(simulation.now - back).toBeLessThan(3000);
  });

  it('after a crash is detected by Reset at the next keep-alive, and followed at once', { tags: ['slow'] }, async () => {
    const keepAlive = { interval: 1000, retryInterval: 1000, maxRetries: 15 };
    const { simulation, station, channel, events } = await scene(attached, { address: { host: '10.0.0.9' }, options: { resetSecret } });
    channel.on('connected', (session) => session.setKeepAlive(keepAlive));
    channel.start();
    await simulation.run(30_000);
    station.environment.stop();
    await simulation.run(1000);
    await restart(simulation, station);
    const back = simulation.now;
    await simulation.run(() => events.length === 3);
    expect(events[1]).toMatchObject({ event: 'disconnected', detail: 'CLOSED' });
    expect(events[2]!.event).toBe('connected');
    expect(simulation.now - back).toBeLessThan(2500);
  });

  it('with the default keep-alive is detected within half a minute', async () => {
    const { simulation, station, channel, events } = await scene(attached, { address: { host: '10.0.0.9' }, options: { resetSecret } });
    channel.start();
    await simulation.run(30_000);
    station.environment.stop();
    await restart(simulation, station);
    const back = simulation.now;
    await simulation.run(() => events.length === 3);
    expect(simulation.now - back).toBeLessThan(26_000);
  });

  it('that closes again and again is not followed in a tight loop', async () => {
    const simulation = nativeSimulation();
    const station = await openStation(simulation, 'station', '10.0.0.9', {
      onSession: (session) => void setTimeoutIn(simulation, () => void session.close(CloseCode.SHUTDOWN)),
    });
    const { channel, names } = await device(simulation, { ...station.address, host: '10.0.0.9' }, attached);
    channel.start();
    await simulation.run(120_000);
    expect(names().filter((name) => name === 'connected').length).toBeLessThan(30);
  });
});

/** A little later on the station. */
function setTimeoutIn(simulation: Simulation, run: () => void): void {
  simulation.at(simulation.now + 50, 0, run);
}

it('a device that is replaced waits a minute, doubling', async () => {
  const simulation = nativeSimulation();
  const station = await openStation(simulation, 'station', '10.0.0.9', {
    onSession: (session) => setTimeoutIn(simulation, () => void session.close(CloseCode.REPLACED)),
  });
  const { channel, events } = await device(simulation, { ...station.address, host: '10.0.0.9' }, attached);
  channel.start();
  await simulation.run(() => events.filter(({ event }) => event === 'connected').length === 4);
  const connects = events.filter(({ event }) => event === 'connected').map(({ at }) => at);
  const gaps = connects.slice(1).map((at, i) => at - connects[i]!);
  for (const [i, gap] of gaps.entries()) {
    expect(gap).toBeGreaterThanOrEqual(60_000 * 2 ** i);
    expect(gap).toBeLessThan(76_000 * 2 ** i);
  }
  expect(events[1]!.detail).toBe('REPLACED');
});

describe('a station with several addresses', () => {
  it('is reached by the one that works, after a quarter of a second', async () => {
    const simulation = nativeSimulation();
    const environment = simulation.host('station', { addresses: ['10.0.0.20/24', '10.0.0.21/24', 'fd00::9/64'] });
    const identity = environment.crypto.generateKey();
    const open = Host.open(environment, { identity, binds: [{ port: STATION_PORT }], responder: () => ['station'] });
    const host = await simulation.settle(open);
    simulation.onPacket = ({ destination }) => (destination.address === '10.0.0.20' ? 'drop' : undefined);
    const address = { host: 'station', port: STATION_PORT, fingerprint: host.fingerprint };
    const { channel, events } = await device(simulation, address, attached);
    channel.start();
    await simulation.run(() => events.length > 0);
    expect(events[0]!.event).toBe('connected');
    expect(simulation.now).toBeGreaterThanOrEqual(250);
    expect(simulation.now).toBeLessThan(300);
    expect(channel.session?.paths.active.address).toBe('10.0.0.21');
    await simulation.run(10_000);
    expect(host.sessions.size).toBe(1);
  });

  it('is reached at the second when another host has the first', async () => {
    const simulation = nativeSimulation();
    const wrong = await openStation(simulation, 'wrong', '10.0.0.20');
    const right = await openStation(simulation, 'right', '10.0.0.21');
    const address = { ...right.address, host: 'both' };
    const { channel, events, environment } = await device(simulation, address, attached);
    Object.assign(environment.network, { resolve: async () => ['10.0.0.20', '10.0.0.21'] });
    channel.start();
    await simulation.run(() => events.length > 0);
    expect(events[0]!.event).toBe('connected');
    expect(simulation.now).toBeLessThan(200); // the first one's failure starts the second
    expect(wrong.host.sessions.size).toBe(0);
  });
});
