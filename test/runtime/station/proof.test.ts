/**
 * A base station whose key is proved by TLS: requests, lifetime of the document, and behaviour when another key
 * answers.
 */
import { beforeEach, describe, expect, it } from 'vitest';
import { type Environment, withLog } from '../../../platform/environment.ts';
import { RemoteError } from '../../../protocol/errors/index.ts';
import type { Session } from '../../../runtime/session/index.ts';
import { Redirect, StationChannel, StationConnector } from '../../../runtime/station/index.ts';
import { StationProof } from '../../../runtime/station/proof.ts';
import type { SimulatedDocument, Simulation } from '../../../testing/index.ts';
import { SessionFixture } from '../../support/fixture/sessions.ts';
import { nativeSimulation } from '../../support/simulation.ts';
import { openServingStation, STATION_PORT } from '../session/support.ts';

const DAY = 86_400_000;
const URL_OF_STATION = 'https://station:443/.well-known/svc';
const byTls = { host: 'station', port: 443, fingerprint: null, rootCerts: 'PEM' } as const;
const KEY = 'ab'.repeat(32);
const OTHER_KEY = 'cd'.repeat(32);

/** Publishes documents, one after the other, the last one repeated; counts requests. */
function publish(simulation: Simulation, ...answers: (string | Error | null | { fingerprint: string; port?: number; days?: number })[]) {
  const asked: Parameters<SimulatedDocument>[0][] = [];
  simulation.documents.set(URL_OF_STATION, (request) => {
    asked.push(request);
    const answer = answers[Math.min(asked.length, answers.length) - 1]!;
    if (answer === null || typeof answer === 'string' || answer instanceof Error) return answer;
    const { fingerprint, port = STATION_PORT, days = 1 } = answer;
    return JSON.stringify({ fingerprint, port, expires: new Date(simulation.wallTime + days * DAY).toISOString() });
  });
  return asked;
}

function proofIn(simulation: Simulation) {
  return new StationProof(simulation.host('client'), byTls);
}

let simulation: Simulation;
beforeEach(() => {
  simulation = nativeSimulation();
});

describe('the proof', () => {
  it('with a pin sends no request', async () => {
    const asked = publish(simulation, { fingerprint: KEY });
    const pinned = new StationProof(simulation.host('client'), { host: 'station', port: 443, fingerprint: OTHER_KEY });
    const address = await pinned.current();
    expect(address).toEqual({ host: 'station', port: 443, urlPort: 443, fingerprint: OTHER_KEY });
    expect(await pinned.changed(address)).toBeNull();
    expect(asked).toEqual([]);
  });

  it('is the document of the host and port of the address, with its roots, in 5 s and 4 KiB', async () => {
    const asked = publish(simulation, { fingerprint: KEY, port: 7 });
    expect(await simulation.settle(proofIn(simulation).current())).toEqual({ host: 'station', port: 7, urlPort: 443, fingerprint: KEY });
    expect(asked).toEqual([{ url: URL_OF_STATION, rootCerts: 'PEM', timeout: 5000, limit: 4096, signal: expect.anything(), fresh: false }]);
  });

  it('brackets an IPv6 address', async () => {
    const urls: string[] = [];
    const getHttps: Environment['getHttps'] = async ({ url }) => {
      urls.push(url);
      throw new RemoteError('TIMEOUT', 'none');
    };
    const environment = { ...withLog(simulation.host('client'), simulation.host('other').log), getHttps };
    await expect(new StationProof(environment, { ...byTls, host: '2001:db8::1' }).current()).rejects.toMatchObject({ code: 'TIMEOUT' });
    expect(urls).toEqual(['https://[2001:db8::1]:443/.well-known/svc']);
  });

  it('is fetched once for all waiting callers, and kept until it expires', async () => {
    const asked = publish(simulation, { fingerprint: KEY });
    const proof = proofIn(simulation);
    const all = await simulation.settle(Promise.all([proof.current(), proof.current(), proof.current()]));
    expect(new Set(all).size).toBe(1);
    await simulation.run(DAY - 1000);
    expect(await proof.current()).toBe(all[0]);
    expect(asked.length).toBe(1);
    await simulation.run(2000);
    await simulation.settle(proof.current());
    expect(asked.length).toBe(2);
  });

  it('requested again returns a changed address, and null for the same', async () => {
    const asked = publish(simulation, { fingerprint: KEY }, { fingerprint: KEY }, { fingerprint: OTHER_KEY });
    const proof = proofIn(simulation);
    const address = await simulation.settle(proof.current());
    expect(await simulation.settle(proof.changed(address))).toBeNull();
    expect(await simulation.settle(proof.changed(await proof.current()))).toMatchObject({ fingerprint: OTHER_KEY });
    // A cache would return the same document again.
    expect(asked.map(({ fresh }) => fresh)).toEqual([false, true, true]);
  });

  it('keeps the old key where no document can be fetched, unless the certificate is invalid', async () => {
    const refused = new RemoteError('CERTIFICATE_VALIDATION_FAILED', 'expired');
    publish(simulation, { fingerprint: KEY }, new RemoteError('CONNECTION_REFUSED', 'none'), null, refused);
    const proof = proofIn(simulation);
    const address = await simulation.settle(proof.current());
    expect(await simulation.settle(proof.changed(address))).toBeNull();
    expect(await simulation.settle(proof.changed(address))).toBeNull();
    await expect(simulation.settle(proof.changed(address))).rejects.toMatchObject({ code: 'CERTIFICATE_VALIDATION_FAILED' });
  });

  it('is valid for at most 7 days', async () => {
    const asked = publish(simulation, { fingerprint: KEY, days: 400 });
    const proof = proofIn(simulation);
    await simulation.settle(proof.current());
    await simulation.run(7 * DAY - 1000);
    await proof.current();
    expect(asked.length).toBe(1);
    await simulation.run(2000);
    await simulation.settle(proof.current());
    expect(asked.length).toBe(2);
  });

  it('does not outlive its time when the wall clock is set back', async () => {
    const asked = publish(simulation, { fingerprint: KEY });
    const host = simulation.host('client');
    let back = 0;
    const clock = { ...host.clock, wallTime: () => simulation.wallTime - back };
    const proof = new StationProof({ ...withLog(host, host.log), clock }, byTls);
    await simulation.settle(proof.current());
    back = 30 * DAY;
    await simulation.run(DAY + 1000);
    await simulation.settle(proof.current());
    expect(asked.length).toBe(2);
  });

  it.each<[string, string | Error | null, string]>([
    ['an invalid certificate', new RemoteError('CERTIFICATE_VALIDATION_FAILED', 'expired'), 'CERTIFICATE_VALIDATION_FAILED'],
    ['HTML', '<!doctype html>', 'BAD_RESPONSE'],
    ['5 KiB', 'x'.repeat(5120), 'BAD_RESPONSE'],
    ['silence', null, 'TIMEOUT'],
  ])('%s is an error, and requested again the next time', async (_, answer, code) => {
    publish(simulation, answer, { fingerprint: KEY });
    const proof = proofIn(simulation);
    await expect(simulation.settle(proof.current())).rejects.toMatchObject({ code });
    expect(await simulation.settle(proof.current())).toMatchObject({ fingerprint: KEY });
  });

  it('stop ends a fetch, and the next one starts again', async () => {
    publish(simulation, null, { fingerprint: KEY });
    const proof = proofIn(simulation);
    const waiting = proof.current();
    await simulation.run(100);
    proof.stop();
    await expect(simulation.settle(waiting)).rejects.toMatchObject({ code: 'STOPPED' });
    expect(await simulation.settle(proof.current())).toMatchObject({ fingerprint: KEY });
  });

  it('needs a platform with https', async () => {
    const { getHttps: _, ...without } = withLog(simulation.host('client'), simulation.host('other').log);
    await expect(new StationProof(without, byTls).current()).rejects.toMatchObject({ code: 'NOT_IMPLEMENTED' });
  });
});

const station = (simulation: Simulation) => openServingStation(simulation, 'station', '10.0.0.9');

const hello = async (session: Session): Promise<number> => (await session.request({ method: 'GET', path: '/hello' })).status;

describe('a client', () => {
  async function client(simulation: Simulation) {
    const { host } = await new SessionFixture({ sim: simulation }).client({ machine: 'client', addresses: ['10.0.0.2/24'] });
    return new StationConnector({ host, station: byTls });
  }

  it('dials the key and port of the document, which is fetched once for many connects', async () => {
    const { address } = await station(simulation);
    const asked = publish(simulation, address);
    const connector = await client(simulation);
    const use = () => connector.use(async (session) => [session.peer.fingerprint, session.peer.verified, await hello(session)]);
    const expected = [address.fingerprint, 'pinned', 205];
    expect(await simulation.settle(Promise.all([use(), use()]))).toEqual([expected, expected]);
    expect(await simulation.settle(use())).toEqual(expected);
    expect(asked.length).toBe(1);
  });

  it('requests the document once more where another key answers, and dials again if it changed', async () => {
    const { address } = await station(simulation);
    const asked = publish(simulation, { fingerprint: OTHER_KEY }, address);
    const connector = await client(simulation);
    expect(await simulation.settle(connector.use(hello))).toBe(205);
    expect(await simulation.settle(connector.use(hello))).toBe(205);
    expect(asked.length).toBe(2);
  });

  it('FINGERPRINT_MISMATCH where the new document names the same wrong key', async () => {
    await station(simulation);
    const asked = publish(simulation, { fingerprint: OTHER_KEY });
    const connector = await client(simulation);
    await expect(simulation.settle(connector.use(hello))).rejects.toMatchObject({ code: 'FINGERPRINT_MISMATCH' });
    expect(asked.length).toBe(2);
    await expect(simulation.settle(connector.use(hello))).rejects.toMatchObject({ code: 'FINGERPRINT_MISMATCH' });
    expect(asked.length).toBe(3);
  });

  it('does not request it again where the target of a redirect has another key, or its own work reports one', async () => {
    const { address } = await station(simulation);
    const asked = publish(simulation, address);
    const connector = await client(simulation);
    const wrong = () => connector.use(async () => new Redirect({ ...address, fingerprint: OTHER_KEY }));
    await expect(simulation.settle(wrong())).rejects.toMatchObject({ code: 'FINGERPRINT_MISMATCH' });
    const device = () => connector.use(() => Promise.reject(new RemoteError('FINGERPRINT_MISMATCH', 'the device')));
    await expect(simulation.settle(device())).rejects.toMatchObject({ message: 'the device' });
    expect(asked.length).toBe(1);
  });

  it('does not dial where the certificate is invalid', async () => {
    const { host } = await station(simulation);
    publish(simulation, new RemoteError('CERTIFICATE_VALIDATION_FAILED', 'the certificate of station has expired'));
    const connector = await client(simulation);
    await expect(simulation.settle(connector.use(hello))).rejects.toMatchObject({ code: 'CERTIFICATE_VALIDATION_FAILED' });
    expect(host.sessions.size).toBe(0);
  });

  it('close, and a signal, end the wait for a document', async () => {
    publish(simulation, null);
    const connector = await client(simulation);
    const stop = new AbortController();
    const [one, two] = [connector.use(hello, { signal: stop.signal }), connector.use(hello)];
    stop.abort();
    await expect(one).rejects.toMatchObject({ code: 'STOPPED' });
    await simulation.settle(connector.close());
    await expect(two).rejects.toMatchObject({ name: 'LocalError', code: 'STOPPED' });
  });
});

describe('a device', () => {
  async function device(simulation: Simulation) {
    const { host } = await new SessionFixture({ sim: simulation }).client({ machine: 'device', addresses: ['10.0.0.1/24'] });
    const channel = new StationChannel({ host, station: byTls, attach: async () => ({ kind: 'attached' }) });
    const events: unknown[] = [];
    channel.on('connected', () => events.push('connected'));
    channel.on('failed', ({ error, refused }) => events.push([error.code, refused]));
    return { channel, events };
  }

  it('attaches, and attaches again with the document that it has', { tags: ['slow'] }, async () => {
    const { address, host } = await station(simulation);
    const asked = publish(simulation, address);
    const { channel, events } = await device(simulation);
    channel.start();
    await simulation.run(20_000);
    for (const session of [...host.sessions]) void session.close();
    await simulation.run(20_000);
    expect(events).toEqual(['connected', 'connected']);
    expect(asked.length).toBe(1);
  });

  it('requests it once per step of the back-off where another key answers', async () => {
    const { address } = await station(simulation);
    const asked = publish(simulation, { fingerprint: OTHER_KEY }, { fingerprint: OTHER_KEY }, address);
    const { channel, events } = await device(simulation);
    channel.start();
    await simulation.run(5000);
    expect([events, asked.length]).toEqual([[['FINGERPRINT_MISMATCH', true]], 2]);
    await simulation.run(20_000);
    expect([events, asked.length]).toEqual([[['FINGERPRINT_MISMATCH', true], 'connected'], 3]);
  });

  it('waits slowly where the certificate is invalid, and as usual where no server answers', async () => {
    const { address } = await station(simulation);
    const fault = new RemoteError('CERTIFICATE_VALIDATION_FAILED', 'the certificate of station has expired');
    const asked = publish(simulation, new RemoteError('CONNECTION_REFUSED', 'none'), fault, address);
    const { channel, events } = await device(simulation);
    channel.start();
    await simulation.run(9000);
    expect(events).toEqual([
      ['CONNECTION_REFUSED', false],
      ['CERTIFICATE_VALIDATION_FAILED', true],
    ]);
    await simulation.run(20_000);
    expect([events.at(-1), asked.length]).toEqual(['connected', 3]);
  });

  it('waits at most 2 minutes where the certificate is invalid: the clock may be set at any time', async () => {
    const asked = publish(simulation, new RemoteError('CERTIFICATE_VALIDATION_FAILED', 'the certificate of station is not yet valid'));
    const { channel } = await device(simulation);
    channel.start();
    await simulation.run(3_600_000);
    expect(asked.length).toBeGreaterThanOrEqual(30);
  });

  it('stop while it waits for a document leaves nothing behind', async () => {
    const { address } = await station(simulation);
    publish(simulation, null, address);
    const { channel, events } = await device(simulation);
    channel.start();
    await simulation.run(100);
    await simulation.settle(channel.stop());
    await simulation.run(60_000);
    expect(events).toEqual([]);
    channel.start();
    await simulation.run(1000);
    expect(events).toEqual(['connected']);
  });
});
