/**
 * STUN of a base station: which requests it answers, its rates, and the ports and addresses at which it can be opened.
 */
import { beforeEach, describe, expect, test, vi } from 'vitest';
import type { PathsReport } from '../../../client/node.ts';
import { type BindOptions, type BoundSocket, type Environment, silentLog } from '../../../platform/environment.ts';
import { LocalError } from '../../../protocol/errors/index.ts';
import type { Path } from '../../../protocol/path.ts';
import { encodeBinding, encodeBindingToPort, encodeCheck, readBindingAnswer } from '../../../protocol/stun/index.ts';
import type { StationSettings } from '../../../server/index.ts';
import { checkStun, Stun } from '../../../server/station/stun.ts';
import type { SimulatedHost } from '../../../testing/index.ts';
import { STATION_PORT } from '../../support/fixture/identifiers.ts';
import { ProductFixture } from '../../support/fixture/products.ts';
import type { StationUnderTest } from '../../support/fixture/station.ts';

/** ms */
const SLOW = 2_000;
const STUN_PORT = STATION_PORT + 1;
const transaction = new Uint8Array(12).fill(7);
const request = encodeBinding(transaction);
const off = { stunPort: null, stunAddress: null };

describe('beside a base station', () => {
  let fixture: ProductFixture;
  let client: SimulatedHost;
  let socket: BoundSocket;
  let heard: { data: Uint8Array; from: Path }[];

  beforeEach(() => {
    fixture = new ProductFixture();
    client = fixture.host('client');
    heard = [];
    socket = client.bind({ port: 0, receive: (data, from) => heard.push({ data: data.slice(), from }) });
  });

  /** Sends to the station and runs. @returns its answers */
  async function ask(station: StationUnderTest, port: number, data = request, address = station.address): Promise<Uint8Array[]> {
    heard = [];
    socket.send(data, 0, data.length, socket.path(address, port), () => {});
    await fixture.sim.run(1_000);
    for (const { from } of heard) expect(from).toMatchObject({ port });
    return heard.map((each) => each.data);
  }

  test('the port after the main one answers with the observed address, and the main one is silent', async () => {
    const station = await fixture.station();
    const [v4, v6] = client.addresses as [string, string];
    const stationV6 = fixture.sim.addressesOf('station').find((each) => each.includes(':'))!;
    expect(station.basestation.stunServers).toEqual([{ port: STUN_PORT, responsePort: true }]);
    const id = '07'.repeat(12);
    for (const [address, mapped] of [
      [station.address, v4.includes(':') ? v6 : v4],
      [stationV6, v4.includes(':') ? v4 : v6],
    ] as const) {
      const [answer] = await ask(station, STUN_PORT, request, address);
      expect(readBindingAnswer(answer!)).toEqual({ transaction: id, mapped: { address: mapped, port: socket.port } });
    }
    expect(await ask(station, STATION_PORT)).toEqual([]);
    expect(station.basestation.stats().stun).toBe(2);
  });

  const key = fixtureKey();
  test.each<[string, Uint8Array]>([
    ['nothing', new Uint8Array(0)],
    ['a header cut short', request.subarray(0, 19)],
    ['an attribute', Uint8Array.of(0, 1, 0, 4, ...request.subarray(4), 0x80, 0x22, 0, 0)],
    ['RESPONSE-PORT below 1,024', encodeBindingToPort(1_023, transaction)],
    [
      'RESPONSE-PORT twice',
      Uint8Array.of(0, 1, 0, 16, ...encodeBindingToPort(50_000, transaction).subarray(4), 0, 0x27, 0, 2, 195, 80, 0, 0),
    ],
    ['another method', Uint8Array.of(0, 3, ...request.subarray(2))],
    ['an indication', Uint8Array.of(0, 0x11, ...request.subarray(2))],
    ['an answer', Uint8Array.of(1, 1, ...request.subarray(2))],
    ['another cookie', Uint8Array.of(...request.subarray(0, 4), 1, 2, 3, 4, ...request.subarray(8))],
    ['a keyed check', key],
    ['an Initiate', new Uint8Array(1200).fill(0x80)],
  ])('%s gets no answer', async (_, data) => {
    const station = await fixture.station();
    expect(await ask(station, STUN_PORT, data)).toEqual([]);
    expect(station.basestation.stats().stun).toBe(0);
  });

  test('an answer goes to the RESPONSE-PORT of the address that asked, and has the source of the request', async () => {
    const station = await fixture.station();
    const other: Uint8Array[] = [];
    const elsewhere = client.bind({ port: 0, receive: (data) => other.push(data.slice()) });
    const toElsewhere = encodeBindingToPort(elsewhere.port, transaction);
    expect(await ask(station, STUN_PORT, toElsewhere)).toEqual([]);
    expect(other.map(readBindingAnswer)).toEqual([
      { transaction: '07'.repeat(12), mapped: { address: expect.any(String), port: socket.port } },
    ]);
    expect(other[0]!.length).toBeLessThanOrEqual(44);
    expect(station.basestation.stats().stun).toBe(1);
  });

  test('with a second address both are announced, and both answer', async () => {
    // The host exists before the base station starts on it, which uses its addresses.
    fixture.host('station', { machine: 'station', addresses: ['10.9.0.1/16', '10.9.0.2/16'] }).stop();
    const station = await fixture.station({ stunPort: 3478, stunAddress: '10.9.0.2' });
    expect(station.basestation.stunServers).toEqual([
      { port: 3478, responsePort: true },
      { address: '10.9.0.2', port: 3479, responsePort: true },
    ]);
    expect(await ask(station, 3478)).toHaveLength(1);
    expect(await ask(station, 3479, request, '10.9.0.2')).toHaveLength(1);
    expect(await ask(station, 3479, request, '10.9.0.1')).toHaveLength(0);
    await fixture.settle(station.basestation.close());
    expect(await ask(station, 3478)).toHaveLength(0);
  });

  test('a device that connects while the STUN port is being opened attaches at once, and gets the port', { tags: ['slow'] }, async () => {
    const station = await fixture.station();
    const under = await fixture.device();
    station.kill();
    station.environmentOf = (host) => slowStun(host);
    client.clock.schedule(SLOW / 4, () => void under.device.start());
    const reports: (() => PathsReport)[] = [];
    under.device.onConnectionEvent((connection) => reports.push(() => connection.paths()));
    const began = fixture.sim.now;
    await station.start();
    expect(fixture.sim.now - began).toBeGreaterThanOrEqual(SLOW);
    await fixture.until(under, 'ATTACHED');
    expect(fixture.sim.now - began).toBeLessThan(SLOW + 100);
    await fixture.connected({ Rendezvous: true });
    await fixture.sim.run(1_000);
    expect(reports[0]?.().station?.stun).toContainEqual(expect.objectContaining({ port: STUN_PORT }));
  });

  test('port 0 opens none, and nothing is announced', async () => {
    const station = await fixture.station({ stunPort: 0 });
    expect(station.basestation.stunServers).toEqual([]);
    expect(await ask(station, STUN_PORT)).toEqual([]);
  });

  test.each<[string, Partial<StationSettings>, string[]]>([
    [
      'a second address of another host',
      { stunAddress: '203.0.113.77' },
      ['STUN answers at one address alone: see --stun-address and --stun-port'],
    ],
    [
      'a second port above 65,535',
      { stunPort: 65_535, stunAddress: '203.0.113.77' },
      ['STUN answers at one address alone: see --stun-address and --stun-port'],
    ],
  ])('%s causes one warning, and the base station runs', async (_, settings, expected) => {
    const warnings: unknown[] = [];
    fixture = new ProductFixture({ log: (_host, level, message, fields) => level === 'warn' && warnings.push([message, fields?.reason]) });
    await fixture.station(settings);
    expect(warnings).toEqual(expected.map((message) => [message, expect.stringMatching(/\w/)]));
    await fixture.raw.attached();
    expect(fixture.stationUnderTest.basestation.attached).toBe(1);
  });
});

describe('settings', () => {
  test('a useless second address is refused with the remedy', () => {
    const problem = (settings: Partial<StationSettings>, host?: string, port = STATION_PORT): string => {
      try {
        checkStun({ ...off, ...settings }, { port, ...(host !== undefined && { host }) });
        return '';
      } catch (error) {
        return (error as Error).message;
      }
    };
    expect(problem({ stunAddress: 'localhost' })).toBe(
      'localhost is not a numeric IPv4 or IPv6 address: give STUN a second address of this host',
    );
    for (const all of ['0.0.0.0', '::', '0::0']) expect(problem({ stunAddress: all })).toMatch(/would be at all addresses/);
    expect(problem({ stunAddress: '2001:DB8::1' }, '2001:db8::1')).toMatch(/is the address of the base station/);
    expect(problem({ stunAddress: '192.0.2.2', stunPort: 0 })).toMatch(/leave out --stun-address/);
    for (const stunPort of [-1, 65_536, 1.5, Number.NaN]) expect(problem({ stunPort })).toMatch(/is not a valid port for STUN/);
    expect(problem({ stunAddress: '192.0.2.2', stunPort: 1 }, '192.0.2.1')).toBe('');
    expect(problem({ stunPort: STATION_PORT })).toBe(
      `${STATION_PORT} is the UDP port of the base station: choose another one for STUN, or 0 to do without`,
    );
    expect(problem({ stunPort: 0 })).toBe('');
    expect(problem({ stunPort: 0 }, undefined, 0)).toBe('');
  });
});

/** A host that takes time to open the STUN port. */
function slowStun(host: SimulatedHost): Environment {
  const bind = async (options: BindOptions): Promise<BoundSocket> => {
    if (options.port === STUN_PORT) await new Promise<void>((resolve) => void host.clock.schedule(SLOW, resolve));
    return host.network.bind(options);
  };
  return Object.create(host, { network: { value: { ...host.network, bind } } });
}

/** STUN on a network that delivers from any address of the test. */
async function forged(mainPort = STATION_PORT) {
  let now = 0;
  let receive: BindOptions['receive'] = () => {};
  const binds: number[] = [];
  const sent: string[] = [];
  const held: (() => void)[] = [];
  const socket = {
    send: (_data: Uint8Array, offset: number, _length: number, path: Path, released: (offset: number) => void) => {
      sent.push(`${path.address} ${path.port}`);
      held.push(() => released(offset));
    },
    path: (address: string, port: number) => ({ ...path(address), port }),
    close: () => {},
  } as unknown as BoundSocket;
  const bind = async (options: BindOptions): Promise<BoundSocket> => {
    // The first family already receives while further ones are opened.
    options.receive(request.slice(), path('192.0.2.1'));
    binds.push(options.port);
    receive = options.receive;
    return socket;
  };
  const warn = vi.fn();
  const environment = { clock: { now: () => now }, network: { bind }, log: { ...silentLog, warn } } as never;
  const stun = new Stun({ environment, mainPort, ...off });
  await stun.opened;
  /** @returns the number of answers */
  const ask = (address: string, times = 1, data = request): number => {
    const before = sent.length;
    for (let i = 0; i < times; i++) {
      receive(data.slice(), path(address));
      release();
    }
    return sent.length - before;
  };
  const release = (): void => {
    for (const run of held.splice(0)) run();
  };
  return {
    stun,
    binds,
    sent,
    warn,
    ask,
    receive: (address: string) => receive(request.slice(), path(address)),
    release,
    pass: (ms: number) => (now += ms),
  };
}

describe('opening', () => {
  test('drops packets that arrive meanwhile', async () => {
    const { stun, sent, warn } = await forged();
    expect([stun.answered, sent, warn.mock.calls]).toEqual([0, [], []]);
  });

  test('warns once of a port in use, without the remedies of other ports', async () => {
    const warn = vi.fn();
    const taken = new LocalError('PORT_IN_USE', 'choose another port (0 takes a free one)');
    const network = { bind: () => Promise.reject(taken) };
    const stun = new Stun({ environment: { network, log: { ...silentLog, warn } } as never, mainPort: STATION_PORT, ...off });
    await stun.opened;
    expect(stun.servers).toEqual([]);
    const reason = 'the port is in use';
    expect(warn).toHaveBeenCalledExactlyOnceWith(expect.stringMatching(/^STUN is off/), { port: STUN_PORT, reason });
  });

  test('warns without an attempt when there is no next port', async () => {
    const { stun, binds, warn } = await forged(65_535);
    expect([stun.servers, binds]).toEqual([[], []]);
    expect(warn).toHaveBeenCalledExactlyOnceWith(expect.stringMatching(/^STUN is off/), { port: 65_536, reason: 'there is no port 65536' });
  });
});

describe('rates', () => {
  test('of one address are 30 at once and 10 a second, and others are answered meanwhile', async () => {
    const { ask, pass } = await forged();
    expect([ask('192.0.2.1', 40), ask('192.0.2.2', 1)]).toEqual([30, 1]);
    pass(1_000);
    expect([ask('192.0.2.1', 40), ask('192.0.2.2', 40)]).toEqual([10, 30]);
    pass(3_000);
    expect(ask('192.0.2.1', 40)).toBe(30);
  });

  test('include requests with RESPONSE-PORT, which are answered only to the address that asked', async () => {
    const { ask, sent } = await forged();
    const elsewhere = encodeBindingToPort(50_000, transaction);
    expect([ask('192.0.2.1', 20, elsewhere), ask('192.0.2.1', 20), ask('192.0.2.1', 1, elsewhere)]).toEqual([20, 10, 0]);
    const own = `192.0.2.1 ${path('192.0.2.1').port}`;
    expect(sent).toEqual([...Array(20).fill('192.0.2.1 50000'), ...Array(10).fill(own)]);
  });

  test('treat a /64 of IPv6 as one address', async () => {
    const { ask } = await forged();
    for (let i = 0; i < 30; i++) expect(ask(`2001:db8::${i}`)).toBe(1);
    expect([ask('2001:db8::ffff:1'), ask('2001:db8:0:1::1')]).toEqual([0, 1]);
  });

  test('are 2,000 a second in all, of which one endlessly asking address takes nothing from others', async () => {
    const { stun, ask, pass } = await forged();
    expect(ask('198.51.100.1', 5_000)).toBe(30);
    let answered = 0;
    for (let i = 0; i < 3_000; i++) answered += ask(`10.1.${i >> 8}.${i & 0xff}`);
    expect(answered).toBe(2_000 - 30);
    expect(ask('192.0.2.1')).toBe(0);
    pass(1);
    expect(ask('192.0.2.1', 3)).toBe(2);
    pass(999);
    expect(ask('192.0.2.2')).toBe(1);
    expect(stun.answered).toBe(2_003);
  });

  test('are kept for a busy address while packets of 40,000 forged addresses arrive', { tags: ['slow'] }, async () => {
    const { ask, pass } = await forged();
    ask('192.0.2.1', 30);
    let [busy, others] = [0, 0];
    for (let i = 0; i < 40_000; i++) {
      if (i % 100 === 0) pass(50);
      busy += ask('192.0.2.1');
      others += ask(`10.${i >> 16}.${(i >> 8) & 0xff}.${i & 0xff}`);
    }
    // The number of answers allowed in 20 s.
    expect([busy, others]).toEqual([200, 40_000]);
  });

  test('do not apply to a blocked socket, which holds 256 answers, and then none until it sends', async () => {
    const { sent, receive, release } = await forged();
    for (let i = 0; i < 300; i++) receive(`10.0.0.${i & 0xff}`);
    expect(sent).toHaveLength(256);
    release();
    receive('192.0.2.1');
    expect(sent).toHaveLength(257);
  });
});

function path(address: string): Path {
  return { kind: 'udp', key: address, address, port: 5_000, socket: 0, local: false };
}

function fixtureKey(): Uint8Array {
  const code = new Uint8Array(32);
  return encodeCheck(new Uint8Array(8), new Uint8Array(16), transaction, { hmacSha256: () => code });
}
