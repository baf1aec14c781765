/** Lines of `svc doctor` for findings that no simulation is needed for: a NAT known by one answer, keep-alive. */
import { describe, expect, test } from 'vitest';
import { channelAdvice } from '../../cli/doctor/advice.ts';
import { documentOf, type Findings, keepAliveText, linesOf } from '../../cli/doctor/report.ts';
import { RemoteError } from '../../protocol/errors/index.ts';
import type { KeepAliveReport } from '../../runtime/keep-alive/index.ts';
import { SERVER_URL } from '../support/fixture/identifiers.ts';

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

test('UDP services of which the device has lost datagrams are named, others are not', () => {
  const findings: Findings = {
    device: 'pr-1.de-1',
    interfaces: [],
    station: null,
    localNat: null,
    channels: null,
    connected: {
      over: 'relay',
      way: 'through the base station',
      paths: [],
      pairs: [],
      remoteNat: null,
      whyNotDirect: null,
      nextAttempt: null,
      keepAlive: { state: 'off', timeout: null, isAtLeast: false, losses: 0, interval: null },
      cramped: false,
      udpServices: [
        { id: 'names', lost: 0 },
        { id: 'game', lost: 7 },
      ],
    },
  };
  expect(linesOf(findings).at(-1)).toBe(
    'UDP services        game: the device has lost 7 datagrams since it offers it, for lack of room or of a part',
  );
  expect(documentOf(findings)).toMatchObject({ udpServices: [{ id: 'names' }, { id: 'game', lost: 7 }] });
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

test('another key on the local network is a stranger’s, or the device was set up again', () => {
  const error = new RemoteError('FINGERPRINT_MISMATCH', 'another key');
  const advice = channelAdvice('local', { code: 'FINGERPRINT_MISMATCH', error, waited: false });
  expect(advice).toMatch(/^a device with these ids and another key answers there: a stranger/);
});

test('a device that has little memory for streams is said to', () => {
  const keepAlive: KeepAliveReport = { state: 'off', timeout: null, isAtLeast: false, losses: 0, interval: null };
  const connected = {
    over: 'relay',
    way: '',
    paths: [],
    pairs: [],
    remoteNat: null,
    whyNotDirect: null,
    nextAttempt: null,
    keepAlive,
    udpServices: [],
  };
  const lines = (cramped: boolean) =>
    linesOf({ device: 'pr-1.de-1', interfaces: [], station: null, localNat: null, connected: { ...connected, cramped }, channels: null });
  expect(lines(true).find((line) => line.startsWith('streams'))).toMatch(/the device has little memory for them/);
  expect(lines(false).some((line) => line.startsWith('streams'))).toBe(false);
});
