/**
 * Where a firewall drops UDP: clients and devices reach the base station over a WebSocket, directly, through nginx or
 * through an HTTP proxy that is the only way out; they report the cause where that fails, and return to UDP when it
 * gets through again. Real programs, on real stacks.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import type { Child } from '../../../bench/processes/parent.ts';
import { record } from '../figures.ts';
import { type Home, OTHER_ADDRESS, SECOND_ADDRESS, STATION_ADDRESS } from '../paths/internet.ts';
import { type LabDevice, labWithProducts, Products } from '../paths/products.ts';
import {
  askingClient,
  certificateFiles,
  echoDevice,
  firewall,
  largeUdpPackets,
  openFirewall,
  openTunnel,
  script,
  targetOf,
  traffic,
} from './blocked.ts';
import { hasNginx, startNginx } from './nginx.ts';

/** ms: until UDP is tried again, and some more. */
const BACK = 65_000;
const BYTES = 500_000;
/** Packets of a tunnel over UDP. */
const SOME = 30;
const WEBSOCKET = `wss://${STATION_ADDRESS}:4433/svc/v1`;
const BY_NGINX = ['--server-websocket', `wss://${OTHER_ADDRESS}/svc/v1`];
const PASSWORD = 'top secret';
/** Seconds within which commands end in a network that lets nothing through. */
const PATIENCE = 6;

/** Outgoing packets that are dropped: UDP, or all but those to the proxy. */
const NO_UDP = 'meta l4proto udp';
const ONLY_PROXY = `ip daddr != ${OTHER_ADDRESS}`;

vi.setConfig({ testTimeout: 90_000 });

interface Answer {
  readonly took: number;
  readonly station: { readonly over: string; readonly proxy: string | null };
}

async function withTls(folder: string): Promise<string[]> {
  const { cert, key } = await certificateFiles(folder, STATION_ADDRESS);
  return ['--host', STATION_ADDRESS, '--http-host', STATION_ADDRESS, '--tls-cert', cert, '--tls-key', key];
}

labWithProducts('where UDP is blocked', { keys: 1, options: withTls }, (lab) => {
  /** Behind nginx, without TLS of its own. */
  let plain: Products;
  /** Clients: UDP blocked, all but the proxy blocked; and a device in an open network. */
  let [home, office, deviceHome]: Home[] = [];
  let device: LabDevice;
  let plainDevice: LabDevice;
  /** Ports of the proxies, by their kind. */
  let ports: Record<string, number>;
  /**
   * A tunnel opened while UDP was blocked, in a home where it no longer is: ms after which it uses UDP, null for never.
   */
  let returning: { user: Child; back: Promise<number | null> };

  let isOver = false;

  const proxy = (kind: string, credentials = ''): string => `http://${credentials}${OTHER_ADDRESS}:${ports[kind]}`;
  const goodProxy = (): string => proxy('good', `me:${encodeURIComponent(PASSWORD)}@`);

  beforeAll(async () => {
    const { internet } = lab;
    plain = new Products(1, SECOND_ADDRESS);
    [home, office, deviceHome] = [internet.home('client', 'port'), internet.home('client', 'port'), internet.home('device', 'port')];
    firewall(home, NO_UDP);
    firewall(office, ONLY_PROXY);
    await Promise.all([openReturning(), startPlain(), startProxies()]);
  });
  afterAll(() => {
    isOver = true;
    return plain?.close();
  });

  async function startProxies(): Promise<void> {
    const proxies = lab.products.node(lab.internet.core, script('proxy'), OTHER_ADDRESS, `me:${PASSWORD}`);
    ports = JSON.parse(await proxies.line());
  }

  async function startPlain(): Promise<void> {
    const { internet } = lab;
    await plain.startStation(internet.core, '--host', SECOND_ADDRESS, '--trusted-proxy', '127.0.0.1', '--log-level', 'debug');
    if (hasNginx) await startNginx(internet.core, plain.folder, OTHER_ADDRESS);
    plainDevice = await echoDevice(plain, internet.home('device', 'port'), 'de-plain');
  }

  /** With the device that it leads to. */
  async function openReturning(): Promise<void> {
    const { internet, products } = lab;
    device = await echoDevice(products, deviceHome!, 'de-free');
    const left = internet.home('client', 'port');
    firewall(left, NO_UDP);
    const { port } = await openTunnel(products, left.host, [...targetOf(products, device), '--relay-only']);
    const user = traffic(products, left.host);
    await user.call('begin', { port });
    openFirewall(left);
    const begun = performance.now();
    const goesByUdp = async (): Promise<number | null> => {
      for (; !isOver && performance.now() - begun < BACK; await sleep(200))
        if (largeUdpPackets(left) > SOME) return performance.now() - begun;
      return null;
    };
    returning = { user, back: goesByUdp() };
  }

  /** Bytes through `svc tunnel` from there, to the device and back. */
  async function throughTunnel(products: Products, { host }: Home, target: readonly string[]): Promise<void> {
    const { process, port } = await openTunnel(products, host, target);
    await traffic(products, host).call('exchange', { port, bytes: BYTES });
    expect((await process.end()).code).toBe(0);
  }

  /** The first answers of one client, whose second connect needs another WebSocket. */
  async function answers({ host }: Home, ...variables: string[]): Promise<[first: Answer, next: Answer]> {
    const client = askingClient(lab.products, host, ...variables);
    const options = { ...device.options, PrivateKey: lab.products.keys[0]!.pem };
    const first = await client.call<Answer>('firstAnswer', { options });
    return [first, await client.call<Answer>('firstAnswer', { options: { ...options, ServerWebSocketUrl: WEBSOCKET } })];
  }

  it('svc tunnel carries bytes over a WebSocket to the base station itself', async () => {
    await throughTunnel(lab.products, home!, targetOf(lab.products, device));
    const [first, next] = await answers(home!);
    for (const { station } of [first, next]) expect(station).toMatchObject({ over: 'websocket', proxy: null });
    record('UDP blocked, first CoAP answer, ms', 'ours', first.took, { atMost: 3_000 });
    record('UDP blocked, the next time, ms', 'ours', next.took, { atMost: 1_000 });
  });

  it.skipIf(!hasNginx)(
    `svc tunnel works through nginx, which reports the client's address${hasNginx ? '' : ' (skipped: needs nginx)'}`,
    async () => {
      await throughTunnel(plain, home!, [...targetOf(plain, plainDevice), ...BY_NGINX]);
      expect(plain.stationLog).toMatch(new RegExp(`client connected.*websocket ${home!.outside}:0`));
      expect(plain.stationLog).not.toMatch(/is not trusted/);
    },
  );

  it('svc tunnel works by CONNECT through an HTTP proxy that is the only way out', async () => {
    lab.products.variables.set(office!.host, { HTTPS_PROXY: goodProxy() });
    await throughTunnel(lab.products, office!, targetOf(lab.products, device));
    const [first, next] = await answers(office!, `HTTPS_PROXY=${goodProxy()}`);
    for (const { station } of [first, next]) expect(station).toMatchObject({ over: 'websocket', proxy: new URL(goodProxy()).host });
    record('only CONNECT gets through, first CoAP answer, ms', 'ours', first.took, { atMost: 5_000 });
    record('only CONNECT gets through, the next time, ms', 'ours', next.took, { atMost: 1_000 });
  });

  it('a device attaches in each of these ways, and is reached; svc doctor elsewhere reports that UDP is blocked there', async () => {
    const { internet, products } = lab;
    const attached = async (which: Products, rule: string, name: string, ...options: string[]): Promise<void> => {
      const behind = internet.home('device', 'port');
      firewall(behind, rule);
      if (rule === ONLY_PROXY) which.variables.set(behind.host, { HTTPS_PROXY: goodProxy() });
      const blocked = await echoDevice(which, behind, name, ...options);
      const free = internet.home('client', 'port');
      await throughTunnel(which, free, targetOf(which, blocked));
      const why = JSON.parse(await which.svc(free.host, 'doctor', ...targetOf(which, blocked), '--json').succeeded());
      const advice = expect.stringMatching(/^Allow UDP from any address to port 5593 of the device/);
      expect(why).toMatchObject({
        station: { over: 'udp' },
        whyNotDirect: { code: 'UDP_BLOCKED', text: expect.stringMatching(/ there; /), advice },
      });
      const { stdout, stderr } = await blocked.process.end();
      expect(stdout + stderr).not.toMatch(/top|secret/);
    };
    await Promise.all([
      attached(products, NO_UDP, 'de-straight'),
      attached(products, ONLY_PROXY, 'de-connect'),
      ...(hasNginx ? [attached(plain, NO_UDP, 'de-nginx', ...BY_NGINX)] : []),
    ]);
  });

  it('svc doctor reports that UDP is blocked, the proxy, and a remedy', async () => {
    const { products } = lab;
    const doctor = async (which: Products, { host }: Home, ...options: string[]): Promise<string> =>
      which.svc(host, 'doctor', ...options).succeeded();
    const target = targetOf(products, device);
    const [text, document, behindProxy, station, byNginx] = await Promise.all([
      doctor(products, home!, ...target),
      doctor(products, home!, ...target, '--json'),
      doctor(products, office!, ...target, '--json'),
      doctor(products, office!, ...target.slice(0, 4)),
      hasNginx ? doctor(plain, home!, ...targetOf(plain, plainDevice), ...BY_NGINX, '--json') : undefined,
    ]);
    expect(text).toMatch(/^ +over a WebSocket at \S+, as UDP to it gets no answer$/m);
    expect(text).toMatch(/^not direct +UDP_BLOCKED: UDP to the base station gets no answer here/m);
    expect(text).toMatch(/^what to do +Allow UDP out to 192\.0\.2\.1, port 4433/m);
    const blocked = { code: 'UDP_BLOCKED', advice: expect.stringMatching(/^Allow UDP out to/) };
    const { host: proxyHost } = new URL(goodProxy());
    expect(JSON.parse(document!)).toMatchObject({ connected: true, station: { over: 'websocket', proxy: null }, whyNotDirect: blocked });
    expect(JSON.parse(behindProxy!)).toMatchObject({ station: { over: 'websocket', proxy: proxyHost }, whyNotDirect: blocked });
    expect(station).toMatch(new RegExp(`over a WebSocket through the proxy ${proxyHost}, as UDP to it gets no answer`));
    expect(station).toMatch(/^what to do +Allow UDP out to/m);
    if (hasNginx)
      expect(JSON.parse(byNginx!)).toMatchObject({
        station: { over: 'websocket', at: { address: OTHER_ADDRESS, port: 443 } },
        whyNotDirect: blocked,
      });
    expect([text, document, behindProxy, station].join()).not.toMatch(/top|secret/);
  });

  it('svc tunnel and svc doctor report the fault of a proxy in time, and never print the password', async () => {
    const { products } = lab;
    const cases: [proxy: string, cause: RegExp][] = [
      [proxy('good', 'me:wr0ng@'), /the proxy \S+ refused .* \(407\): it does not take the name and password of HTTPS_PROXY/],
      [proxy('good'), /the proxy \S+ refused .* \(407\): it asks for a name and a password, as in http:/],
      [proxy('stalling', 'me:wr0ng@'), /the proxy \S+ did not connect to 192\.0\.2\.1:4433 within [\d.]+ s/],
      [proxy('silent', 'me:wr0ng@'), /the proxy \S+ did not connect to 192\.0\.2\.1:4433 within [\d.]+ s/],
      [proxy('portal', 'me:wr0ng@'), /the proxy \S+ refused .* \(511\): this network may want a login first, in a browser/],
      [proxy('page', 'me:wr0ng@'), /the proxy \S+ spoke before .*: this network may want a login first, in a browser/],
      [proxy('impostor', 'me:wr0ng@'), /opens no WebSocket through the proxy \S+, it answers 200 and a page: a login page of this network/],
    ];
    const target = [...targetOf(products, device), '--timeout', String(PATIENCE)];
    const failed = async (HTTPS_PROXY: string, ...command: string[]): Promise<string> => {
      products.variables.set(office!.host, { HTTPS_PROXY, SVC_DEBUG: '1' });
      const { code, stdout, stderr } = await products.svc(office!.host, ...command, ...target).ended;
      expect([command, code]).toEqual([command, 1]);
      expect(stdout + stderr).not.toMatch(/wr0ng/);
      return command.includes('--json') ? JSON.stringify(JSON.parse(stdout)) : stdout + stderr;
    };
    // Not all at once: an overloaded processor is not under test.
    await Promise.all(cases.map(async ([name, cause]) => expect(await failed(name, 'tunnel', 'echo')).toMatch(cause)));
    const doctor = (index: number): string[] => (index % 2 === 0 ? ['doctor'] : ['doctor', '--json']);
    await Promise.all(cases.map(async ([name, cause], index) => expect(await failed(name, ...doctor(index))).toMatch(cause)));
  });

  it('a tunnel returns to UDP within about a minute after that gets through again, without losing a byte', async () => {
    const took = await returning.back;
    expect(took).not.toBeNull();
    record('back to UDP after, s', 'ours', took! / 1000, { atMost: 62 });
    const { bytes, longest } = await returning.user.call<{ bytes: number; longest: number }>('end');
    expect(bytes).toBeGreaterThan(BYTES);
    record('longest wait for bytes while a tunnel goes back to UDP, ms', 'ours', longest, { atMost: 1_000 });
  });
});
