/** `svc doctor` in a simulation with NATs: its findings, its output, and the advice for each code. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Known } from '../../cli/client/known.ts';
import { type Findings, keepAliveText, linesOf } from '../../cli/doctor/report.ts';
import { type DoctorOptions, doctor } from '../../cli/doctor.ts';
import { Output } from '../../cli/frame/output.ts';
import type { KeepAliveReport } from '../../transport/keep-alive/index.ts';
import type { NatOptions } from '../../transport/sim/index.ts';
import { svcInProcess } from '../e2e/in-process.ts';
import { ids, SCT, SERVER_URL } from '../support/fixture/identifiers.ts';
import { ProductFixture } from '../support/fixture/products.ts';
import { homeOf, type NatKind } from '../support/nat-kinds.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-doctor-'));
  await writeFile(join(folder, 'sct'), SCT);
  await writeFile(join(folder, 'wrong-sct'), 'wrong');
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** Waits for file operations under way; otherwise any amount of virtual time passes meanwhile. */
async function filesDone(): Promise<void> {
  do await new Promise((resolve) => setImmediate(resolve));
  while (process.getActiveResourcesInfo().some((name) => name.startsWith('FSReq')));
}

/** A client and a device, each behind a NAT of a kind, and the output of `svc doctor` at the client. */
class Clinic {
  readonly fixture = new ProductFixture({ hop: filesDone });
  readonly options: DoctorOptions = { timeout: 20_000, local: false, state: join(folder, `state-${++states}`), json: true };
  stdout = '';
  stderr = '';

  async open(client: NatKind, device: NatKind, more: { rendezvous?: 'off' | 'paired'; stunPort?: number; box?: Partial<NatOptions> } = {}) {
    const { rendezvous, stunPort = null, box = {} } = more;
    const station = await this.fixture.station({ stunPort });
    const home = homeOf(this.fixture.sim, device, 'device-home', 2, box);
    const office = homeOf(this.fixture.sim, client, 'client-home', 1, box);
    const under = await this.fixture.attached({ environment: home.host, ...(rendezvous !== undefined && { rendezvous }) });
    const server = { server: SERVER_URL, serverFingerprint: station.fingerprint };
    Object.assign(this.options, server, {
      product: ids.productId,
      deviceId: ids.deviceId,
      sctFile: join(folder, 'sct'),
      fingerprint: under.device.deviceFingerprint,
    });
    return {
      run: (options: Partial<DoctorOptions> = {}) => this.#run(office.host, options),
      under,
      station,
      client: office.host,
      clock: home.host.clock,
    };
  }

  async #run(environment: ReturnType<typeof homeOf>['host'], options: Partial<DoctorOptions>): Promise<string> {
    const all = { ...this.options, ...options };
    const sink = (name: 'stdout' | 'stderr') =>
      new Writable({
        write: (chunk, _encoding, done) => {
          this[name] += chunk;
          done();
        },
      });
    const output = new Output(all.json === true, { stdout: sink('stdout'), stderr: sink('stderr') });
    const work = doctor(undefined, all, { environment, output, signal: new AbortController().signal });
    return this.fixture.settle(
      work.then(
        () => 'done',
        (error: Error) => error.message,
      ),
    );
  }

  get document(): Record<string, unknown> {
    return JSON.parse(this.stdout);
  }
}

let states = 0;

test('a direct path is awaited, and shown with both NATs', async () => {
  const clinic = new Clinic();
  const { run } = await clinic.open('port', 'full-cone');
  expect(await run()).toBe('done');
  expect(clinic.document).toMatchObject({
    device: 'pr-1.de-1',
    connected: true,
    over: 'direct',
    station: {
      verified: 'pinned',
      at: { port: 4433 },
      observed: { address: '198.51.100.1' },
      stun: [{ port: 4434, mapped: { address: '198.51.100.1' } }],
    },
    nat: { local: { mapping: 'independent' }, remote: { mapping: 'independent' } },
    interfaces: [{ name: 'sim0', addresses: ['192.168.1.5/24'], kind: 'default', counts: true }],
    paths: expect.arrayContaining([
      expect.objectContaining({ active: true, over: 'ipv4', address: '198.51.100.2' }),
      expect.objectContaining({ active: false, over: 'relay', port: 4433 }),
    ]),
    whyNotDirect: null,
  });
  expect(clinic.stderr).toBe('');
});

test('the output for a person is a page of lines', async () => {
  const clinic = new Clinic();
  const { run } = await clinic.open('random', 'random');
  expect(await run({ json: false })).toBe('done');
  expect(clinic.stdout.split('\n')).toMatchObject([
    'connected to pr-1.de-1, through the base station',
    'interfaces          sim0  192.168.1.5/24  the way to the internet',
    expect.stringMatching(/^base station {8}\S+:4433, pinned by its fingerprint$/),
    expect.stringMatching(/^ {20}it sees this host as 198\.51\.100\.1:\d+$/),
    expect.stringMatching(/^ {20}STUN at \S+:4434 sees this host as 198\.51\.100\.1:\d+$/),
    expect.stringMatching(/^NAT here {12}assigns a socket a random port for each peer/),
    expect.stringMatching(/^keep-alive {10}how long the NAT keeps a mapping is not known yet: .*; keep-alive every 25 s$/),
    expect.stringMatching(/^NAT of the device {3}assigns a socket a random port for each peer/),
    expect.stringMatching(/^paths {15}active {2}through the base station {2}\S+:4433 {2}[\d.]+ ms {2}since \d{4}-.*Z$/),
    expect.stringMatching(/^tried {15}198\.51\.100\.2:\d+ {2}reflexive {2}failed: no answer to \d+ checks$/),
    expect.stringMatching(/^ {20}198\.51\.100\.2:\d+ {2}reflexive {2}failed: no answer to \d+ checks$/),
    expect.stringMatching(/^not direct {10}BOTH_RANDOM: one NAT gives each flow a random port/),
    expect.stringMatching(/^what to do {10}Forward a UDP port .*`svc device --candidate 198\.51\.100\.2:5593`/),
    expect.stringMatching(/^next attempt {8}in \d+ s, while a connection is open$/),
    '',
  ]);
  expect(clinic.stderr).toBe('connected; searching for a direct path\n');
});

test('the output for a program names each pair of addresses that was tried, with its outcome', async () => {
  const clinic = new Clinic();
  const { run } = await clinic.open('random', 'random');
  await run();
  const failed = {
    address: '198.51.100.2',
    kind: 'reflexive',
    state: 'failed',
    reason: expect.stringMatching(/^no answer to \d+ checks$/),
  };
  expect(clinic.document.pairs).toMatchObject([failed, failed]);
});

describe('why it is not direct', () => {
  test.each<[string, NatKind, NatKind, Parameters<Clinic['open']>[2], Partial<DoctorOptions>]>([
    ['DISABLED', 'port', 'port', {}, { relayOnly: true }],
    ['DISABLED', 'port', 'port', { rendezvous: 'off' }, {}],
    ['BOTH_RANDOM', 'random', 'sequential', {}, {}],
    ['NO_ANSWER', 'blocked', 'port', {}, {}],
    ['UDP_BLOCKED', 'blocked', 'open', {}, {}],
  ])('%s: %s and %s, %o %o', async (code, client, device, more, options) => {
    const clinic = new Clinic();
    const { run } = await clinic.open(client, device, more);
    expect(await run(options)).toBe('done');
    expect(clinic.document).toMatchObject({ connected: true, over: 'relay', whyNotDirect: { code, advice: expect.any(String) } });
  });

  test.each<[string, Parameters<Clinic['open']>[2], Partial<DoctorOptions>, RegExp, RegExp]>([
    ['here', {}, { relayOnly: true }, /at this end/, /^Leave out --relay-only: `svc doctor pr-1\.de-1 --state \S+`\.$/],
    [
      'at the device',
      { rendezvous: 'paired' },
      {},
      /the other end/,
      /^Pair with the device, `svc pair pr-1\.de-1 --state \S+ --username <name>`/,
    ],
  ])('DISABLED %s: text and advice concern that end', async (_, more, options, text, advice) => {
    const clinic = new Clinic();
    const { run } = await clinic.open('port', 'port', more);
    await run(options);
    const found = { code: 'DISABLED', text: expect.stringMatching(text), advice: expect.stringMatching(advice) };
    expect(clinic.document).toMatchObject({ whyNotDirect: found });
  });

  test('a base station that an attempt did not use is asked by itself', async () => {
    const clinic = new Clinic();
    const { run } = await clinic.open('port', 'port');
    await run({ relayOnly: true });
    expect(clinic.document).toMatchObject({ station: { url: SERVER_URL, stun: [{ port: 4434, mapped: { address: '198.51.100.1' } }] } });
  });
});

describe('a connect that fails', () => {
  test('shows the result of each channel, and that the base station is reachable', async () => {
    const clinic = new Clinic();
    const { run, under } = await clinic.open('port', 'port');
    await clinic.fixture.settle(under.device.close());
    expect(await run()).toMatch(/remote NOT_ATTACHED/);
    expect(clinic.document).toMatchObject({
      device: 'pr-1.de-1',
      connected: false,
      station: { url: SERVER_URL, verified: 'pinned', error: null },
      channels: {
        local: { code: 'NONE', text: expect.stringMatching(/--no-local/) },
        remote: { code: 'NOT_ATTACHED', advice: expect.stringMatching(/check that it runs/) },
        direct: { code: 'NONE' },
      },
    });
  });

  test('shows the same to a person', async () => {
    const clinic = new Clinic();
    const { run } = await clinic.open('port', 'port');
    await run({ sctFile: join(folder, 'wrong-sct'), json: false, local: true });
    expect(clinic.stdout).toMatch(/^not connected to pr-1\.de-1\n/);
    expect(clinic.stdout).toMatch(
      /^ways {16}local network {2}NOT_FOUND: [\s\S]*`svc discover`[\s\S]*base station {2}TOKEN_REJECTED: [\s\S]*--sct[\s\S]*address {2}NONE: not tried/m,
    );
  });

  test('fails with --wait only when the time is over', async () => {
    const clinic = new Clinic();
    const { run, under, clock } = await clinic.open('port', 'port');
    under.device.setBasestationAttach(false);
    await clinic.fixture.sim.run(1_000);
    const failure = await run({ wait: true, timeout: 3_000, json: false });
    expect(clinic.stderr).toBe('device pr-1.de-1 is not attached to the base station: waiting for it\n');
    expect(failure).toMatch(/no channel to the device within 3 s: it did not attach to the base station in that time/);
    expect(clinic.stdout).toMatch(
      /base station {2}OPERATION_IN_PROGRESS: the device was not attached, and did not attach in time\n.*check that it runs/,
    );
    clinic.stdout = '';
    clock.schedule(2_000, () => under.device.setBasestationAttach(true));
    expect(await run({ wait: true })).toBe('done');
    expect(clinic.document).toMatchObject({ connected: true });
  });

  test('at its timeout still shows why other channels had failed before', async () => {
    const clinic = new Clinic();
    const { run, under } = await clinic.open('port', 'port');
    under.device.setBasestationAttach(false);
    await clinic.fixture.sim.run(1_000);
    await run({ wait: true, timeout: 4_000, local: true });
    expect(clinic.document).toMatchObject({
      channels: {
        local: { code: 'NOT_FOUND', text: expect.stringMatching(/\w/) },
        remote: { code: 'OPERATION_IN_PROGRESS', advice: expect.stringMatching(/check that it runs/) },
      },
    });
  });

  test('for another key of the device explains how to pair again, and does not mention the base station’s key', async () => {
    const clinic = new Clinic();
    const { run } = await clinic.open('port', 'port');
    expect(await run({ fingerprint: 'ab'.repeat(32) })).toMatch(/does not have the given fingerprint \(abab.*compare it with/);
    expect(clinic.document).toMatchObject({
      channels: {
        remote: { code: 'FINGERPRINT_MISMATCH', text: expect.stringMatching(/\w/), advice: expect.stringMatching(/svc pair --replace/) },
      },
    });
    expect(clinic.stdout).not.toMatch(/--server-fingerprint/);
  });

  test('with a short time shows why the base station was not reached, and not that it was still in progress', async () => {
    const clinic = new Clinic();
    const { run } = await clinic.open('port', 'port');
    for (const protocol of ['udp', 'tcp'] as const) clinic.fixture.sim.block('client-home', protocol);
    expect(await run({ timeout: 3_000 })).toMatch(/remote CONNECTION_REFUSED/);
    const text = expect.stringMatching(/^no base station answers .*; nor over a WebSocket: \S+ did not answer/);
    expect(clinic.document).toMatchObject({ channels: { remote: { code: 'CONNECTION_REFUSED', text } } });
  });

  test('reports a base station with another key', async () => {
    const clinic = new Clinic();
    const { run } = await clinic.open('port', 'port');
    expect(await run({ serverFingerprint: 'ab'.repeat(32) })).not.toBe('done');
    expect(clinic.document).toMatchObject({
      station: { at: null, error: { code: 'FINGERPRINT_MISMATCH' } },
      channels: { remote: { code: 'FINGERPRINT_MISMATCH', advice: expect.stringMatching(/--server-fingerprint/) } },
    });
  });
});

describe('without a device svc doctor', () => {
  const none = { product: undefined, deviceId: undefined, sctFile: undefined, fingerprint: undefined, local: undefined };
  const nobody = none as unknown as Partial<DoctorOptions>;

  test('checks the base station, its STUN and this host', async () => {
    const clinic = new Clinic();
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
    const clinic = new Clinic();
    const { run } = await clinic.open('open', 'open');
    await run({ ...nobody, json: false });
    expect(clinic.stdout).toMatch(/^NAT here {12}none: the address of this host is the same from outside$/m);
  });

  test('reports how a NAT maps', async () => {
    const clinic = new Clinic();
    const { run } = await clinic.open('port', 'open');
    await run({ ...nobody, json: false });
    expect(clinic.stdout).toMatch(/^NAT here {12}assigns a socket one port for all peers, the best kind for direct paths$/m);
  });

  test('reports STUN on another port, and STUN that does not answer', async () => {
    const clinic = new Clinic();
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

  test('needs the fingerprint of a new base station that TLS cannot authenticate', async () => {
    const clinic = new Clinic();
    const { run } = await clinic.open('port', 'open');
    const remedy = /give --server-fingerprint, as svc basestation prints/;
    expect(await run({ ...nobody, serverFingerprint: undefined } as unknown as Partial<DoctorOptions>)).toMatch(remedy);
    expect(clinic.document).toMatchObject({ station: { at: null, error: { text: expect.stringMatching(remedy) } } });
  });

  test('refuses when nothing is known or given, and names both options', async () => {
    const clinic = new Clinic();
    const { run } = await clinic.open('port', 'open');
    expect(await run({ ...nobody, server: undefined } as unknown as Partial<DoctorOptions>)).toMatch(/pairing string, or .*--server/);
  });

  test('fails with a remedy when the base station is not reached', async () => {
    const clinic = new Clinic();
    const { run } = await clinic.open('port', 'open');
    expect(await run({ ...nobody, serverFingerprint: 'ab'.repeat(32) })).toMatch(
      /^no way to the base station: .*FINGERPRINT_MISMATCH.*--server-fingerprint/,
    );
  });
});

describe('--stun-port', () => {
  test('is not used where the connection names the ports of the base station, and this is reported', async () => {
    const clinic = new Clinic();
    const { run } = await clinic.open('port', 'port');
    await run({ stunPort: 1 });
    expect(clinic.document).toMatchObject({ station: { stun: [{ port: 4434 }] } });
    expect(clinic.stderr).toBe('warning: --stun-port 1 is not used: the base station has named its STUN ports\n');
  });

  test('is used where the connection searches no direct path', async () => {
    const clinic = new Clinic();
    const { run } = await clinic.open('port', 'port');
    await run({ stunPort: 1, relayOnly: true });
    expect(clinic.document).toMatchObject({ station: { stun: [{ port: 1, mapped: null }] } });
    expect(clinic.stderr).toBe('');
  });
});

describe('where UDP to the base station gets no answer', () => {
  const advice = /^Allow UDP out to station, port 4433, in the firewall of this network/;

  async function blocked() {
    const clinic = new Clinic();
    const opened = await clinic.open('port', 'port');
    clinic.fixture.sim.block(opened.client, 'udp');
    return { clinic, ...opened };
  }

  test('a connection uses a WebSocket, and the cause and a remedy are shown', async () => {
    const { clinic, run } = await blocked();
    expect(await run()).toBe('done');
    expect(clinic.document).toMatchObject({
      over: 'relay',
      station: { over: 'websocket', proxy: null, at: { port: 4433 }, observed: null, stun: [] },
      whyNotDirect: { code: 'UDP_BLOCKED', text: expect.stringContaining('over a WebSocket'), advice: expect.stringMatching(advice) },
    });
  });

  test('so does a base station alone; a person gets lines', async () => {
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

describe('the NAT here, by one answer,', () => {
  const seen = (address: string): Findings => ({
    device: null,
    interfaces: [{ name: 'eth0', addresses: ['192.168.1.5/24'], kind: 'default', counts: true }],
    station: {
      url: SERVER_URL,
      verified: 'pinned',
      at: { address, port: 4433 },
      over: 'udp',
      proxy: null,
      observed: { address, port: 1 },
      error: null,
      stun: [],
    },
    localNat: { mapping: 'unknown' },
    connected: null,
    channels: null,
  });
  const nat = (findings: Findings) => linesOf(findings).find((line) => line.startsWith('NAT here'));

  test('exists, with an unknown class where no STUN port answered', () => {
    const text = /there is one: from outside this host is 203\.0\.113\.7; how it assigns ports is unknown, as no STUN port answered$/;
    expect(nat(seen('203.0.113.7'))).toMatch(text);
  });

  test.each(['127.0.0.1', '127.1.2.3', '::1', '192.168.1.5'])('is unknown if the base station sees %s', (address) => {
    expect(nat(seen(address))).toMatch(/unknown: there may be one$/);
  });
});

describe('keep-alive', () => {
  const report: KeepAliveReport = { state: 'learned', timeout: 60_400, isAtLeast: false, losses: 0, interval: 52_100 };

  test.each<[Partial<KeepAliveReport>, string]>([
    [{}, 'the NAT keeps a mapping for about 60 s; keep-alive every 52 s'],
    [{ isAtLeast: true }, 'the NAT keeps a mapping for at least 60 s; keep-alive every 52 s'],
    [{ interval: null }, 'the NAT keeps a mapping for about 60 s'],
    [{ state: 'off', timeout: null, interval: 25_000 }, 'how long the NAT keeps a mapping is not measured; keep-alive every 25 s'],
    [
      { state: 'unfit', timeout: null, interval: 25_000 },
      'how long the NAT keeps a mapping cannot be measured here, for example because it has several outside addresses; keep-alive every 25 s',
    ],
  ])('is described as measured: %j', (change, expected) => {
    expect(keepAliveText({ ...report, ...change })).toBe(expected);
  });
});

describe('excluded interfaces', () => {
  test('do not count; an unknown one is named with those that exist', async () => {
    const clinic = new Clinic();
    const { run } = await clinic.open('port', 'port');
    await run({ candidatesOn: ['sim0', 'eth9'] });
    expect(clinic.document).toMatchObject({ interfaces: [{ name: 'sim0', counts: false }] });
    expect(clinic.stderr).toBe('warning: no interface is called "eth9" (--no-candidates-on); interfaces that are up: sim0\n');
  });
});

describe('wrong use', () => {
  test.each([
    [['doctor', 'home', '-d', 'home'], /give the device once/],
    [['doctor', 'home', '--no-candidates-on', '--json'], /Expected the name of an interface/],
    [['doctor', '--wait', '--address', '127.0.0.1:1', '--fingerprint', 'ab'.repeat(32)], /--wait needs a base station/],
    [['doctor', 'p=1,d=2,zz'], /pairing string|expected p=/],
    [['doctor', '--stun-port', '0', '--server', 'https://127.0.0.1:1'], /a port is a number from 1 to 65535/i],
    [
      ['doctor', '--relay-only', '--address', '127.0.0.1:1', '--fingerprint', 'ab'.repeat(32)],
      /--relay-only and --address exclude each other/,
    ],
    [
      ['doctor', '--relay-only', '--product', 'p', '--device-id', 'd', '--fingerprint', 'ab'.repeat(32)],
      /--relay-only needs a base station/,
    ],
    [
      [
        ...['doctor', '--server', 'https://127.0.0.1:1', '--relay-only', '--wait', '--no-hard-nat', '--no-local', '--sct', 'abc'],
        ...['--server-key', 'x', '--jwt', 'a.b.c', '--jwt-file', 'y', '--fingerprint', 'ab'.repeat(32)],
        ...['--keep-alive-profile', 'eco'],
      ],
      /--relay-only, --wait, --no-hard-nat, --no-local, --sct, --server-key, --jwt, --jwt-file, --fingerprint, --keep-alive-profile have effect only with a device/,
    ],
    [['doctor', '--server', 'https://127.0.0.1:1', '--wait'], /--wait has effect only with a device: name one, or leave it out/],
  ])('%s', async (args, expected) => {
    const { code, stdout, stderr } = await svcInProcess([...args, '--state', join(folder, 'wrong')]);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toMatch(expected);
  });
});
