/** How `svc device` is configured to find direct paths: options and device.json together, and wrong use. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { givenRendezvous, type RendezvousFlags, rendezvousOf, warnOfOff, withRendezvous } from '../../cli/device-app/rendezvous.ts';
import { Output } from '../../cli/frame/output.ts';
import type { RendezvousOptions } from '../../device/index.ts';
import { svcInProcess } from '../e2e/in-process.ts';
import { TextStream } from './text-stream.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-rendezvous-'));
});
afterAll(() => rm(folder, { recursive: true }));

/** The options as commander parses them. */
function flags(...args: string[]): RendezvousFlags {
  return withRendezvous(new Command()).parse(args, { from: 'user' }).opts();
}

describe('options and device.json together', () => {
  const none = { hardNat: true, candidates: [], noCandidatesOn: [] };

  test.each<[string[], RendezvousOptions | undefined, RendezvousOptions]>([
    [[], undefined, none],
    [['--rendezvous', 'off'], { mode: 'paired' }, { ...none, mode: 'off' }],
    [[], { mode: 'paired', hardNat: false }, { ...none, mode: 'paired', hardNat: false }],
    [['--no-hard-nat'], {}, { ...none, hardNat: false }],
    [
      ['--candidate', '203.0.113.7:1', '--candidate', '[2001:db8::7]:2'],
      { candidates: ['203.0.113.7:1', '203.0.113.8:3'] },
      { ...none, candidates: ['203.0.113.7:1', '203.0.113.8:3', '[2001:db8::7]:2'] },
    ],
    [['--port-mapping', 'auto'], { portMapping: 'off' }, { ...none, portMapping: 'auto' }],
    [[], { portMapping: 'off' }, { ...none, portMapping: 'off' }],
    [['--no-candidates-on', 'a', '--no-candidates-on', 'b'], { noCandidatesOn: ['c'] }, { ...none, noCandidatesOn: ['c', 'a', 'b'] }],
  ])('%j and %j', (args, file, expected) => expect(rendezvousOf(file, flags(...args))).toEqual(expected));

  test('more than three addresses are refused with the remedy', () => {
    const file = { candidates: ['203.0.113.7:1', '203.0.113.7:2', '203.0.113.7:3'] };
    expect(() => rendezvousOf(file, flags('--candidate', '203.0.113.7:4'))).toThrow(/--candidate: a device has at most 3 .*leave some out/);
  });

  test('given options are known', () => {
    const given = (...args: string[]) =>
      Object.entries(givenRendezvous(flags(...args))).flatMap(([name, value]) => (value === undefined ? [] : [name]));
    expect(given()).toEqual([]);
    const all = [
      '--rendezvous',
      'off',
      '--candidate',
      '203.0.113.7:1',
      '--no-candidates-on',
      'a',
      '--no-hard-nat',
      '--port-mapping',
      'off',
    ];
    expect(given(...all)).toEqual(['--rendezvous', '--candidate', '--no-candidates-on', '--no-hard-nat', '--port-mapping']);
  });
});

describe('without direct paths, options that have no effect cause a warning:', () => {
  const all = ['--candidate', '203.0.113.7:1', '--no-candidates-on', 'a', '--no-hard-nat', '--port-mapping', 'off'];

  test.each<[string[], RendezvousOptions | undefined, string]>([
    [all, undefined, ''],
    [all, { mode: 'paired' }, ''],
    [[], { mode: 'off', hardNat: false }, ''],
    [['--rendezvous', 'off'], undefined, ''],
    [['--rendezvous', 'anyone', '--no-hard-nat'], { mode: 'off' }, ''],
    [
      ['--rendezvous', 'off', ...all],
      { mode: 'paired' },
      'warning: --candidate, --no-candidates-on, --no-hard-nat, --port-mapping have no effect: --rendezvous off\n',
    ],
    [['--no-hard-nat'], { mode: 'off' }, 'warning: --no-hard-nat has no effect: device.json turns direct paths off\n'],
  ])('%j and %j', (args, file, expected) => {
    const stderr = new TextStream();
    const given = flags(...args);
    warnOfOff(new Output(true, { stdout: stderr, stderr }), rendezvousOf(file, given).mode, given);
    expect(stderr.text).toBe(expected);
  });
});

describe('svc device', () => {
  const device = (name: string, ...args: string[]) =>
    svcInProcess(['device', '--data', join(folder, name), '--product', 'pr-1', '--device-id', 'de-1', '--init', ...args]);

  test.each([
    [['--candidate', 'home.example:5593'], /is not an address with port, such as 203\.0\.113\.7:5593 or \[2001:db8::7\]:5593/],
    [['--candidate', '203.0.113.7:0'], /is not an address with port/],
    [['--candidate', '127.0.0.1:5593'], /127\.0\.0\.1 is not an address at which others reach this host: give the one outside/],
    [['--candidate', '[fe80::1]:5593'], /fe80::1 is not an address at which others reach/],
    [['--candidate', '224.0.0.1:5593'], /is not an address at which others reach/],
    [
      ['--candidate', '203.0.113.7:1', '--candidate', '203.0.113.7:2', '--candidate', '203.0.113.7:3', '--candidate', '203.0.113.7:4'],
      /at most 3/,
    ],
    [['--port-mapping', 'upnp'], /Allowed choices are auto, off/],
    [['--keep-alive-profile', 'lively'], /Allowed choices are live, balanced, eco/],
    [['--rendezvous', 'everybody'], /Allowed choices are anyone, paired, off/],
  ])('refuses %j', async (args, expected) => {
    const { code, stdout, stderr } = await device('wrong', ...args);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toMatch(expected);
  });

  test('with --init warns that the options have no effect', { tags: ['slow'] }, async () => {
    const { code, stderr } = await device('init', '--candidate', '203.0.113.7:5593', '--no-hard-nat', '--keep-alive-profile', 'eco');
    expect(code).toBe(0);
    expect(stderr).toContain('with --init, --keep-alive-profile, --candidate, --no-hard-nat have no effect: give that at each start');
  });

  test('names the place of an error in device.json', async () => {
    const file = join(folder, 'offers.json');
    await writeFile(file, JSON.stringify({ Rendezvous: { Candidates: ['203.0.113.7'] } }));
    expect(await device('file', '--config', file)).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/offers\.json: Rendezvous\.Candidates\[0\]: is wrong: "203\.0\.113\.7" is not an address with port/),
    });
  });
});
