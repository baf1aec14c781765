/**
 * UDP tunnels in virtual time: a program at the client, a base station or none, a device, and a service on a host of
 * its own.
 */
import { beforeEach, describe, expect, test, vi } from 'vitest';
import type { Connection, SvcClient, UdpTunnel, UdpTunnelOptions } from '../../../client/node.ts';
import type { AuthorizationRequest } from '../../../device/index.ts';
import type { BoundSocket } from '../../../platform/environment.ts';
import { bindError } from '../../../platform/node/udp-errors.ts';
import type { SimulatedHost } from '../../../testing/index.ts';
import type { DeviceUnderTest } from '../../support/fixture/devices-and-clients.ts';
import { ProductFixture } from '../../support/fixture/products.ts';

const PORT = 53;
const MINUTE = 60_000;

let fixture: ProductFixture;
let under: DeviceUnderTest;
let phone: SimulatedHost;
let client: SvcClient;
let asked: AuthorizationRequest[];
let verdict: boolean;
/** What the service received: source port and text. It answers in capitals; to `much` its answer fits no packet. */
let served: { port: number; text: string }[];

beforeEach(async () => {
  fixture = await ProductFixture.withStation();
  under = await fixture.attached();
  phone = fixture.sim.host('phone');
  client = fixture.client(phone);
  [asked, served, verdict] = [[], [], true];
  const address = await startService();
  under.device.addUdpTunnelService({ id: 'names', type: 'dns', host: address, port: PORT });
  under.device.onAuthorizationRequest((request) => {
    asked.push(request);
    return verdict;
  });
});

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const textOf = (data: Uint8Array): string => new TextDecoder().decode(data);
const run = (time: number): Promise<boolean> => fixture.sim.run(time);

/** @returns its address */
async function startService(): Promise<string> {
  const host = fixture.sim.host('service');
  const socket: BoundSocket = await host.network.bind({
    port: PORT,
    receive: (datagram, path) => {
      served.push({ port: path.port, text: textOf(datagram) });
      const text = textOf(datagram);
      const answer = bytes(text === 'much' ? 'x'.repeat(1_300) : text.toUpperCase());
      socket.send(answer, 0, answer.length, path, () => {});
    },
  });
  return host.addresses[0]!;
}

/** A program on the phone with its own socket. */
class Program {
  readonly got: string[] = [];
  readonly #port: number;
  #socket!: BoundSocket;

  static async start(tunnel: UdpTunnel): Promise<Program> {
    const program = new Program(tunnel.getLocalPort());
    program.#socket = await phone.network.bind({ port: 0, host: '127.0.0.1', receive: (data) => program.got.push(textOf(data)) });
    return program;
  }

  private constructor(port: number) {
    this.#port = port;
  }

  send(text: string | Uint8Array): void {
    const data = typeof text === 'string' ? bytes(text) : text;
    this.#socket.send(data, 0, data.length, this.#socket.path('127.0.0.1', this.#port), () => {});
  }
}

async function connected(way: 'RELAY' | 'DIRECT' = 'RELAY'): Promise<Connection> {
  const connection = fixture.connection(way === 'DIRECT' ? { Remote: false } : {}, client);
  if (way === 'DIRECT') {
    connection.enableDirectCandidates();
    connection.addDirectCandidate(under.host, under.device.localPort);
    connection.endOfDirectCandidates();
  }
  await fixture.settle(connection.connect());
  expect(connection.getType()).toBe(way);
  return connection;
}

async function opened(connection: Connection, options: UdpTunnelOptions = {}): Promise<UdpTunnel> {
  const tunnel = connection.createUdpTunnel();
  await fixture.settle(tunnel.open('names', 0, options));
  return tunnel;
}

const stats = () => under.device.udpTunnelServiceStats('names');

describe.each(['RELAY', 'DIRECT'] as const)('over %s', (way) => {
  test('a question is answered; the first answer takes the time of the whole way', { tags: ['slow'] }, async () => {
    const tunnel = await opened(await connected(way));
    const program = await Program.start(tunnel);
    const began = fixture.sim.now;
    program.send('svc.example');
    await fixture.sim.run(() => program.got.length > 0);
    // 10 ms per link: one or two to the device, one more to the service, and back.
    expect(fixture.sim.now - began).toBeLessThan(way === 'RELAY' ? 70 : 50);
    expect(program.got).toEqual(['SVC.EXAMPLE']);
    expect(tunnel.stats()).toEqual({
      ...{ flows: 1, flowsOpened: 1, flowsFailed: 0, flowsReplaced: 0 },
      ...{ sent: 1, received: 1, tooLong: 0, dropped: 0, incomplete: 0 },
    });
    expect(stats()).toEqual({ flows: 1, sent: 1, received: 1, tooLong: 0, dropped: 0, incomplete: 0 });
  });

  test('each program has a flow, and gets its answers; each flow is authorized', { tags: ['slow'] }, async () => {
    const tunnel = await opened(await connected(way));
    const programs = await Promise.all([0, 1, 2].map(() => Program.start(tunnel)));
    for (const round of ['a', 'b']) {
      for (const [index, program] of programs.entries()) program.send(`${round}${index}`);
      await run(200);
    }
    expect(programs.map(({ got }) => got)).toEqual([0, 1, 2].map((index) => [`A${index}`, `B${index}`]));
    expect(new Set(served.map(({ port }) => port)).size).toBe(3);
    expect(asked.map(({ action }) => action)).toEqual(Array(4).fill('UdpTunnel:Connect'));
    expect(asked[3]?.attributes).toEqual({ 'UdpTunnel:ServiceId': 'names', 'UdpTunnel:ServiceType': 'dns' });
  });

  test('a NAT rebinds the phone: the flow stays the same', { tags: ['slow'] }, async () => {
    const program = await Program.start(await opened(await connected(way)));
    program.send('before');
    await run(1_000);
    fixture.sim.rebind(phone);
    for (let i = 0; i < 20; i++) {
      program.send(`after${i}`);
      await run(500);
    }
    expect(program.got[0]).toBe('BEFORE');
    expect(program.got.at(-1)).toBe('AFTER19');
    expect(new Set(served.map(({ port }) => port)).size).toBe(1);
  });
});

test('a datagram that fits no packet goes in parts, both ways', { tags: ['slow'] }, async () => {
  const tunnel = await opened(await connected());
  const program = await Program.start(tunnel);
  for (const length of [1_158, 1_300, 20_000, 0]) program.send('x'.repeat(length));
  program.send('much');
  await run(500);
  expect(program.got.map(({ length }) => length).sort((a, b) => a - b)).toEqual([0, 1_158, 1_300, 1_300, 20_000]);
  expect(tunnel.stats()).toMatchObject({ sent: 5, received: 5, tooLong: 0, dropped: 0, incomplete: 0 });
  expect(stats()).toMatchObject({ sent: 5, received: 5, tooLong: 0, dropped: 0, incomplete: 0 });
});

describe('a flow ends', () => {
  test('after two minutes without a datagram, at both ends; the next one begins another', { tags: ['slow'] }, async () => {
    const tunnel = await opened(await connected());
    const program = await Program.start(tunnel);
    for (let i = 0; i < 5; i++) {
      program.send('again');
      await run(1.5 * MINUTE);
    }
    expect(new Set(served.map(({ port }) => port)).size).toBe(1);
    await run(MINUTE);
    expect([tunnel.stats().flows, stats().flows]).toEqual([0, 0]);
    program.send('later');
    await run(200);
    expect(program.got).toHaveLength(6);
    expect(new Set(served.map(({ port }) => port)).size).toBe(2);
    expect(asked).toHaveLength(3);
  });

  test('by the idle timeout of the service, which counts as no failure', { tags: ['slow'] }, async () => {
    under.device.addUdpTunnelService({
      id: 'short',
      type: 'dns',
      host: fixture.sim.host('other').addresses[0]!,
      port: 1,
      idleTimeout: 5_000,
    });
    const tunnel = (await connected()).createUdpTunnel();
    await fixture.settle(tunnel.open('short'));
    const program = await Program.start(tunnel);
    program.send('one');
    await run(4_900);
    expect(under.device.udpTunnelServiceStats('short')).toMatchObject({ flows: 1, received: 1 });
    await run(1_000);
    expect(under.device.udpTunnelServiceStats('short').flows).toBe(0);
    expect(tunnel.stats()).toMatchObject({ flows: 0, flowsFailed: 0 });
    program.send('two');
    await run(200);
    expect(under.device.udpTunnelServiceStats('short')).toMatchObject({ flows: 1, received: 2 });
  });

  test('with its tunnel', async () => {
    const tunnel = await opened(await connected());
    const program = await Program.start(tunnel);
    program.send('one');
    await run(200);
    await fixture.settle(tunnel.close());
    await run(200);
    expect(stats().flows).toBe(0);
    expect(() => tunnel.getLocalPort()).toThrow(expect.objectContaining({ code: 'INVALID_STATE' }));
    program.send('two');
    await run(200);
    expect(served).toHaveLength(1);
  });

  test('with the connection, closed or lost', { tags: ['slow'] }, async () => {
    const lost = await opened(await connected());
    const closed = await connected('DIRECT');
    for (const tunnel of [lost, await opened(closed)]) (await Program.start(tunnel)).send('one');
    await run(200);
    expect(stats().flows).toBe(2);
    await fixture.settle(closed.close());
    await run(200);
    expect(stats().flows).toBe(1);
    for (const to of ['station', under.host]) fixture.sim.link('phone', to, { delay: 10, loss: 1 });
    await run(3 * MINUTE);
    expect(stats().flows).toBe(0);
  });

  test('with its service, and no other replaces it', { tags: ['slow'] }, async () => {
    const connection = await connected();
    const tunnel = await opened(connection);
    const program = await Program.start(tunnel);
    program.send('one');
    await run(200);
    under.device.removeUdpTunnelService('names');
    await run(200);
    expect(tunnel.stats()).toMatchObject({ flows: 0, flowsFailed: 1 });
    await run(2_000);
    program.send('two');
    await run(200);
    expect(served).toHaveLength(1);
    expect(tunnel.stats()).toMatchObject({ flowsOpened: 2, flowsFailed: 2 });
    expect(await fixture.code(connection.createUdpTunnel().open('names'))).toBe('NOT_FOUND');
    expect(() => stats()).toThrow(expect.objectContaining({ code: 'NOT_FOUND' }));
  });
});

describe('a flow is refused', () => {
  test('when permission was withdrawn: the program’s datagrams are dropped for a second, without a request for each', async () => {
    const tunnel = await opened(await connected());
    const program = await Program.start(tunnel);
    verdict = false;
    for (let i = 0; i < 50; i++) {
      program.send('please');
      await run(10);
    }
    expect(asked).toHaveLength(2);
    expect(tunnel.stats()).toMatchObject({ flowsOpened: 1, flowsFailed: 1 });
    expect(tunnel.stats().dropped).toBeGreaterThan(40);
    await run(1_000);
    verdict = true;
    program.send('now');
    await run(200);
    expect(program.got).toEqual(['NOW']);
    expect(served.map(({ text }) => text)).toEqual(['now']);
  });

  test('above the limit of its type; open flows stay', { tags: ['slow'] }, async () => {
    const tunnel = await opened(await connected());
    under.device.limitUdpTunnelFlows('dns', 1);
    const [first, second] = [await Program.start(tunnel), await Program.start(tunnel)];
    first.send('one');
    await run(200);
    second.send('two');
    await run(200);
    first.send('three');
    await run(200);
    expect([first.got, second.got]).toEqual([['ONE', 'THREE'], []]);
    expect(tunnel.stats()).toMatchObject({ flows: 1, flowsFailed: 1 });
  });

  test('above the limit of one connection; other connections have their own', { tags: ['slow'] }, async () => {
    under.device.limitUdpTunnelFlowsPerConnection(2);
    const tunnels = [await opened(await connected()), await opened(await connected('DIRECT'))];
    const programs = await Promise.all(tunnels.flatMap((tunnel) => [1, 2, 3].map(() => Program.start(tunnel))));
    for (const program of programs) {
      program.send('x');
      await run(200);
    }
    expect(programs.map(({ got }) => got.length)).toEqual([1, 1, 0, 1, 1, 0]);
  });
});

test('with more programs than flows the one that was silent longest is replaced', { tags: ['slow'] }, async () => {
  const tunnel = await opened(await connected(), { maxFlows: 2 });
  const programs = await Promise.all([1, 2, 3].map(() => Program.start(tunnel)));
  for (const index of [0, 1, 0, 2, 0]) {
    programs[index]!.send('x');
    await run(200);
  }
  expect(programs.map(({ got }) => got.length)).toEqual([3, 1, 1]);
  expect(tunnel.stats()).toMatchObject({ flows: 2, flowsOpened: 3, flowsReplaced: 1, flowsFailed: 0 });
  expect(stats().flows).toBe(2);
  expect(new Set(served.map(({ port }) => port)).size).toBe(3);
});

test('datagrams pass while a download fills the connection', { tags: ['slow'] }, async () => {
  under.device.addStreamListener(7, async (incoming) => incoming.accept().write(new Uint8Array(4_000_000)));
  fixture.sim.link(under.host, 'station', { delay: 10, rate: 8_000_000 });
  const connection = await connected();
  const tunnel = await opened(connection);
  const stream = connection.openStream(7);
  await fixture.settle(stream.opened);
  const reading = stream.readAll(4_000_000);
  const program = await Program.start(tunnel);
  for (let i = 0; i < 20; i++) {
    program.send(`q${i}`);
    await run(100);
  }
  expect(program.got.length).toBeGreaterThanOrEqual(19);
  expect((await fixture.settle(reading)).length).toBe(4_000_000);
});

describe('a refused open', () => {
  test('has its reason', { tags: ['slow'] }, async () => {
    const connection = await connected();
    expect(await fixture.code(connection.createUdpTunnel().open('nothing'))).toBe('NOT_FOUND');
    expect(await fixture.code(connection.createUdpTunnel().open('a/b'))).toBe('INVALID_ARGUMENT');
    expect(await fixture.code(connection.createUdpTunnel().open('names', 65_536))).toBe('INVALID_ARGUMENT');
    expect(await fixture.code(connection.createUdpTunnel().open('names', 0, { idleTimeout: 10 }))).toBe('INVALID_ARGUMENT');
    expect(await fixture.code(connection.createUdpTunnel().open('names', 0, { maxFlows: 0 }))).toBe('INVALID_ARGUMENT');
    const tunnel = connection.createUdpTunnel();
    expect(() => tunnel.stats()).toThrow(expect.objectContaining({ code: 'INVALID_STATE' }));
    await fixture.settle(tunnel.open('names'));
    expect(await fixture.code(tunnel.open('names'))).toBe('INVALID_STATE');
    expect(await fixture.code(connection.createUdpTunnel().open('names', tunnel.getLocalPort()))).toBe('PORT_IN_USE');
    verdict = false;
    expect(await fixture.code(connection.createUdpTunnel().open('names'))).toBe('FORBIDDEN');
    await fixture.settle(connection.close());
    expect(await fixture.code(connection.createUdpTunnel().open('names'))).toBe('STOPPED');
  });

  test('of a privileged port has a remedy, and the tunnel can be opened at another', async () => {
    const connection = await connected();
    const refused = bindError(Object.assign(new Error('bind EACCES'), { code: 'EACCES' }), { port: 53, receive: () => {} });
    const bind = vi.spyOn(phone.network, 'bind').mockRejectedValueOnce(refused);
    const tunnel = connection.createUdpTunnel();
    const opening = fixture.settle(tunnel.open('names', 53));
    await expect(opening).rejects.toMatchObject({ code: 'PRIVILEGED_PORT', message: expect.stringContaining('1024 or above') });
    expect(bind).toHaveBeenLastCalledWith(expect.objectContaining({ port: 53, host: '127.0.0.1' }));
    await fixture.settle(tunnel.open('names'));
    const program = await Program.start(tunnel);
    program.send('late');
    await run(500);
    expect(program.got).toEqual(['LATE']);
  });

  test('of a port that cannot be opened for another reason is UNKNOWN, and says it', async () => {
    const connection = await connected();
    const failure = bindError(Object.assign(new Error('bind EMFILE'), { code: 'EMFILE' }), { port: 53, receive: () => {} });
    vi.spyOn(phone.network, 'bind').mockRejectedValueOnce(failure);
    const opening = fixture.settle(connection.createUdpTunnel().open('names', 53));
    await expect(opening).rejects.toMatchObject({ code: 'UNKNOWN', message: expect.stringContaining('EMFILE') });
  });

  test('of a service at the device has its reason', { tags: ['slow'] }, () => {
    const service = { id: 'x', type: 'dns', host: '192.0.2.1', port: 1 };
    const add = (change: object) => () => under.device.addUdpTunnelService({ ...service, ...change });
    expect(add({ id: 'names' })).toThrow(expect.objectContaining({ code: 'IN_USE' }));
    for (const change of [{ port: 0 }, { id: '' }, { host: '224.0.0.251' }, { idleTimeout: 999 }, { type: '' }])
      expect(add(change)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }));
    expect(() => under.device.removeUdpTunnelService('x')).toThrow(expect.objectContaining({ code: 'NOT_FOUND' }));
    expect(() => under.device.addCoapResource('GET', '/udp-tunnels/mine', () => undefined)).toThrow(/reserved/);
    under.device.addTcpTunnelService({ ...service, id: 'names' });
  });
});
