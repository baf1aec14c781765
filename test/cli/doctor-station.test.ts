/** What `svc doctor` finds out about a base station: without a device, about its STUN, and where it gets no UDP. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { Known } from '../../cli/client/known.ts';
import { linesOf } from '../../cli/doctor/report.ts';
import type { DoctorOptions } from '../../cli/doctor.ts';
import { ids, SERVER_URL } from '../support/fixture/identifiers.ts';
import { type Clinic, Clinics } from './doctor-clinic.ts';

let clinics: Clinics;
beforeAll(async () => {
  clinics = await Clinics.open();
});
afterAll(() => clinics.close());

let clinic: Clinic;
beforeEach(() => {
  clinic = clinics.clinic();
});

describe('without a device svc doctor', () => {
  const none = { product: undefined, deviceId: undefined, sctFile: undefined, fingerprint: undefined, local: undefined };
  const nobody = none as unknown as Partial<DoctorOptions>;

  test('checks the base station, its STUN and this host', async () => {
    const { run } = await clinic.open('random', 'open');
    expect(await run(nobody)).toBe('done');
    expect(clinic.document).toMatchObject({
      device: null,
      connected: null,
      station: { url: SERVER_URL, verified: 'pinned', at: { port: 4433 }, stun: [{ port: 4434, mapped: { address: '198.51.100.1' } }] },
      nat: { local: { mapping: 'random' } },
    });
  });

  test('reports that a host has no NAT', async () => {
    const { run } = await clinic.open('open', 'open');
    await run({ ...nobody, json: false });
    expect(clinic.stdout).toMatch(/^NAT here {12}none: the address of this host is the same from outside$/m);
  });

  test('reports how a NAT maps', { tags: ['slow'] }, async () => {
    const { run } = await clinic.open('port', 'open');
    await run({ ...nobody, json: false });
    expect(clinic.stdout).toMatch(/^NAT here {12}assigns a socket one port for all peers, the best kind for direct paths$/m);
  });

  test('reports STUN on another port, and STUN that does not answer', { tags: ['slow'] }, async () => {
    const { run } = await clinic.open('port', 'open', { stunPort: 3478 });
    await run({ ...nobody, json: false });
    expect(clinic.stdout).toMatch(/STUN at \S+:4434 does not answer/);
    expect(clinic.stdout).toMatch(
      /^what to do {10}Open UDP port 4434 in the firewall of the base station, or choose an open one: `svc basestation/m,
    );
    clinic.stdout = '';
    await run({ ...nobody, json: false, stunPort: 3478 });
    expect(clinic.stdout).toMatch(/STUN at \S+:3478 sees this host as 198\.51\.100\.1:/);
    expect(clinic.stdout).not.toContain('what to do');
  });

  test('needs the fingerprint of a new base station that TLS cannot authenticate', { tags: ['slow'] }, async () => {
    const { run } = await clinic.open('port', 'open');
    const remedy = /give --server-fingerprint, as svc basestation prints/;
    expect(await run({ ...nobody, serverFingerprint: undefined } as unknown as Partial<DoctorOptions>)).toMatch(remedy);
    expect(clinic.document).toMatchObject({ station: { at: null, error: { text: expect.stringMatching(remedy) } } });
  });

  test('refuses when nothing is known or given, and names both options', async () => {
    const { run } = await clinic.open('port', 'open');
    expect(await run({ ...nobody, server: undefined } as unknown as Partial<DoctorOptions>)).toMatch(/pairing string, or .*--server/);
  });

  test('fails with a remedy when the base station is not reached', { tags: ['slow'] }, async () => {
    const { run } = await clinic.open('port', 'open');
    expect(await run({ ...nobody, serverFingerprint: 'ab'.repeat(32) })).toMatch(
      /^no way to the base station: .*FINGERPRINT_MISMATCH.*--server-fingerprint/,
    );
  });
});

describe('--stun-port', () => {
  test('is not used where the connection names the ports of the base station, and this is reported', { tags: ['slow'] }, async () => {
    const { run } = await clinic.open('port', 'port');
    await run({ stunPort: 1 });
    expect(clinic.document).toMatchObject({ station: { stun: [{ port: 4434 }] } });
    expect(clinic.stderr).toBe('warning: --stun-port 1 is not used: the base station has named its STUN ports\n');
  });

  test('is used where the connection searches no direct path', { tags: ['slow'] }, async () => {
    const { run } = await clinic.open('port', 'port');
    await run({ stunPort: 1, relayOnly: true });
    expect(clinic.document).toMatchObject({ station: { stun: [{ port: 1, mapped: null }] } });
    expect(clinic.stderr).toBe('');
  });
});

describe('where UDP to the base station gets no answer', () => {
  const advice = /^Allow UDP out to station, port 4433, in the firewall of this network/;

  async function blocked() {
    const clinic = clinics.clinic();
    const opened = await clinic.open('port', 'port');
    clinic.fixture.sim.block(opened.client, 'udp');
    return { clinic, ...opened };
  }

  test('a connection uses a WebSocket, and the cause and a remedy are shown', { tags: ['slow'] }, async () => {
    const { clinic, run } = await blocked();
    expect(await run()).toBe('done');
    expect(clinic.document).toMatchObject({
      over: 'relay',
      station: { over: 'websocket', proxy: null, at: { port: 4433 }, observed: null, stun: [] },
      whyNotDirect: { code: 'UDP_BLOCKED', text: expect.stringContaining('over a WebSocket'), advice: expect.stringMatching(advice) },
    });
  });

  test('so does a base station alone; a person gets lines', { tags: ['slow'] }, async () => {
    const { clinic, run } = await blocked();
    const none = { product: undefined, deviceId: undefined, sctFile: undefined, fingerprint: undefined, local: true };
    expect(await run({ ...none, json: false } as unknown as Partial<DoctorOptions>)).toBe('done');
    const lines = clinic.stdout.split('\n');
    expect(lines).toContainEqual(expect.stringMatching(/^ {20}over a WebSocket at 10\.0\.1\.1:4433, as UDP to it gets no answer$/));
    expect(lines).toContainEqual(expect.stringMatching(/^what to do {10}Allow UDP out to station, port 4433/));
    expect(clinic.stdout).not.toContain('STUN');
  });

  test('the base station is checked at its remembered WebSocket', async () => {
    const { clinic, run } = await blocked();
    const { server = '', state, fingerprint = '' } = clinic.options;
    const asked: string[] = [];
    const accept = (_: unknown, { path }: { path: string }): number => {
      asked.push(path);
      return 404;
    };
    const elsewhere = clinic.fixture.host('elsewhere', { machine: 'elsewhere' });
    elsewhere.listenWebSocket({ port: 8443, secure: true, protocol: 'svc.1', accept });
    const known = await Known.open(state!);
    const { productId: ProductId, deviceId: DeviceId } = ids;
    const webSocket = 'wss://elsewhere:8443/remembered';
    known.remember({ ProductId, DeviceId, Fingerprint: fingerprint, ServerUrl: server, ServerWebSocketUrl: webSocket });
    await known.save();
    await run();
    expect(asked).toEqual(['/remembered', '/remembered']);
    expect(clinic.document).toMatchObject({ connected: false, station: { at: null } });
  });

  test('the proxy is named', () => {
    const station = { url: SERVER_URL, verified: 'pinned', at: { address: '192.0.2.1', port: 3128 }, over: 'websocket' } as const;
    const findings = { device: null, interfaces: [], localNat: null, connected: null, channels: null };
    const lines = linesOf({ ...findings, station: { ...station, proxy: 'proxy:3128', observed: null, error: null, stun: [] } });
    expect(lines).toContainEqual(expect.stringContaining('over a WebSocket through the proxy proxy:3128, as UDP'));
  });
});
