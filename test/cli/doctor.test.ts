/** `svc doctor` in a simulation with NATs: its findings, its output, and the advice for each code. */
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { DoctorOptions } from '../../cli/doctor.ts';
import { svcInProcess } from '../e2e/in-process.ts';
import { SERVER_URL } from '../support/fixture/identifiers.ts';
import type { NatKind } from '../support/nat-kinds.ts';
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

test('a direct path is awaited, and shown with both NATs', { tags: ['slow'] }, async () => {
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
    udpServices: [],
  });
  expect(clinic.stderr).toBe('');
});

test('the output for a person is a page of lines', { tags: ['slow'] }, async () => {
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

test('the output for a program names each pair of addresses that was tried, with its outcome', { tags: ['slow'] }, async () => {
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
  ])('%s: %s and %s, %o %o', { tags: ['slow'] }, async (code, client, device, more, options) => {
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
  ])('DISABLED %s: text and advice concern that end', { tags: ['slow'] }, async (_, more, options, text, advice) => {
    const { run } = await clinic.open('port', 'port', more);
    await run(options);
    const found = { code: 'DISABLED', text: expect.stringMatching(text), advice: expect.stringMatching(advice) };
    expect(clinic.document).toMatchObject({ whyNotDirect: found });
  });

  test('a base station that an attempt did not use is asked by itself', { tags: ['slow'] }, async () => {
    const { run } = await clinic.open('port', 'port');
    await run({ relayOnly: true });
    expect(clinic.document).toMatchObject({ station: { url: SERVER_URL, stun: [{ port: 4434, mapped: { address: '198.51.100.1' } }] } });
  });
});

describe('a connect that fails', () => {
  test('shows the result of each channel, and that the base station is reachable', { tags: ['slow'] }, async () => {
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

  test('shows the same to a person', { tags: ['slow'] }, async () => {
    const { run } = await clinic.open('port', 'port');
    await run({ sctFile: join(clinics.folder, 'wrong-sct'), json: false, local: true });
    expect(clinic.stdout).toMatch(/^not connected to pr-1\.de-1\n/);
    expect(clinic.stdout).toMatch(
      /^ways {16}local network {2}NOT_FOUND: [\s\S]*`svc discover`[\s\S]*base station {2}TOKEN_REJECTED: [\s\S]*--sct[\s\S]*address {2}NONE: not tried/m,
    );
  });

  test('fails with --wait only when the time is over', { tags: ['slow'] }, async () => {
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

  test('at its timeout still shows why other channels had failed before', { tags: ['slow'] }, async () => {
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

  test('for another key of the device explains how to pair again, and does not mention the base station’s key', {
    tags: ['slow'],
  }, async () => {
    const { run } = await clinic.open('port', 'port');
    expect(await run({ fingerprint: 'ab'.repeat(32) })).toMatch(/does not have the given fingerprint \(abab.*compare it with/);
    expect(clinic.document).toMatchObject({
      channels: {
        remote: { code: 'FINGERPRINT_MISMATCH', text: expect.stringMatching(/\w/), advice: expect.stringMatching(/svc pair - --replace/) },
      },
    });
    expect(clinic.stdout).not.toMatch(/--server-fingerprint/);
  });

  test('with a short time shows why the base station was not reached, and not that it was still in progress', async () => {
    const { run } = await clinic.open('port', 'port');
    for (const protocol of ['udp', 'tcp'] as const) clinic.fixture.sim.block('client-home', protocol);
    expect(await run({ timeout: 3_000 })).toMatch(/remote CONNECTION_REFUSED/);
    const text = expect.stringMatching(/^no base station answers .*; nor over a WebSocket: \S+ did not answer/);
    expect(clinic.document).toMatchObject({ channels: { remote: { code: 'CONNECTION_REFUSED', text } } });
  });

  test('reports a base station with another key', { tags: ['slow'] }, async () => {
    const { run } = await clinic.open('port', 'port');
    expect(await run({ serverFingerprint: 'ab'.repeat(32) })).not.toBe('done');
    expect(clinic.document).toMatchObject({
      station: { at: null, error: { code: 'FINGERPRINT_MISMATCH' } },
      channels: { remote: { code: 'FINGERPRINT_MISMATCH', advice: expect.stringMatching(/--server-fingerprint/) } },
    });
  });
});

describe('excluded interfaces', () => {
  test('do not count; an unknown one is named with those that exist', { tags: ['slow'] }, async () => {
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
    const { code, stdout, stderr } = await svcInProcess([...args, '--state', join(clinics.folder, 'wrong')]);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toMatch(expected);
  });
});
