/**
 * Client and device behind one box, in one network: found by multicast DNS or by a rendezvous, in a crowd of other
 * services; with the cable to the internet pulled, and with the base station switched off.
 */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, expect, it, vi } from 'vitest';
import type { Child } from '../../../bench/processes/parent.ts';
import { svcInProcess } from '../../e2e/in-process.ts';
import { record } from '../figures.ts';
import type { Namespace } from '../namespaces.ts';
import type { Home } from './internet.ts';
import { script } from './lab.ts';
import { type LabDevice, labWithProducts, type View } from './products.ts';

const ATTEMPT = 15_000;
const BYTES = 2_000_000;
const CROWD = 1_000;
const WEB_PORT = 8080;
/**
 * ms in which a device asks whether its name is free, announces it twice (RFC 6762 §8), and then stays silent for a
 * second (§6): queries in that time wait.
 */
const ANNOUNCED = 3_500;
/** ms from one answer until the next query is answered at once (RFC 6762 §6). */
const REPEAT = 1_200;
/** ms without the internet: longer than a keep-alive of the base station, and than a scan of the interfaces. */
const OFFLINE = 8_000;

const WEB = `require('node:http').createServer((_, response) => response.end('home')).listen(${WEB_PORT}, '127.0.0.1', () => console.log('up'))`;

interface Timed extends View {
  readonly took: number;
}

vi.setConfig({ testTimeout: 60_000 });

labWithProducts('in one network', { keys: 1, options: ['--keep-alive', '2000'] }, (lab) => {
  let home: Home;
  let far: Namespace;
  let client: Child;
  let device: LabDevice;
  /** Options of commands that know the device. */
  let target: string[];

  beforeAll(async () => {
    const { internet, products } = lab;
    home = internet.home('client', 'port');
    far = home.addHost(['192.168.1.20/24']);
    const state = ['--state', join(products.folder, 'state')];
    const { stdout } = await svcInProcess(['key', 'create', ...state, '--json']);
    await products.node(far, '-e', WEB).line();
    const offers = ['--tunnel', `web=http:127.0.0.1:${WEB_PORT}`, '--allow', JSON.parse(stdout).fingerprint];
    device = await products.device(far, 'de-near', ...offers);
    await sleep(ANNOUNCED);
    client = products.client(home.host);
    target = ['--product', 'pr-lab', '--device-id', device.name, '--fingerprint', device.options.DeviceFingerprint!, ...state];
  });

  function open(name: string, more: Record<string, unknown> = {}): Promise<Timed> {
    return client.call('connect', { name, options: { ...device.options, PrivateKey: lab.products.keys[0]!.pem, ...more } });
  }

  it('a device is found by multicast DNS', async () => {
    const found = await open('found', { Local: true, Remote: false });
    expect(found).toMatchObject({ type: 'DIRECT', over: 'lan' });
    record('connect on the local network, ms', 'ours', found.took, { atMost: 1_000 });
  });

  it('a relayed connection migrates to the local network, although the box has no hairpinning', async () => {
    expect(await open('moved')).toMatchObject({ type: 'RELAY' });
    const moved = await client.call<Timed>('settled', { name: 'moved', limit: ATTEMPT, untilDirect: true });
    expect(moved).toMatchObject({ type: 'DIRECT', over: 'lan' });
    record('relay to local network, ms', 'ours', moved.took, { atMost: 1_000 });
  });

  it('a device is found among 1,000 other announced services', async () => {
    const crowd = lab.products.child(home.addHost(['192.168.1.30/24']), script('crowd'));
    await crowd.call('announce', { count: CROWD, address: '192.168.1.30' });
    await sleep(REPEAT);
    const found = await open('crowd', { Local: true, Remote: false });
    expect(found.over).toBe('lan');
    record('connect among 1,000 services, ms', 'ours', found.took, { atMost: 1_000 });
    await crowd.stop();
  });

  it('connections survive, and carry every byte, when the cable to the internet is pulled', async () => {
    home.boxes[0]!.ip('link set dev wan down');
    for (const host of [home.host, far]) host.ip('route del default');
    const offline = sleep(OFFLINE);
    for (const name of ['found', 'moved']) await client.call('transfer', { name, bytes: BYTES });
    await offline;
    for (const name of ['found', 'moved']) {
      await client.call('request', { name });
      expect(await client.call('view', { name })).toMatchObject({ type: 'DIRECT', over: 'lan' });
    }
  });

  it('svc connect and a tunnel work without the internet and with the base station switched off', async () => {
    const { products } = lab;
    await products.stopStation();
    expect(await products.svc(home.host, 'connect', ...target).succeeded()).toContain('on the local network');
    const tunnel = products.svc(home.host, 'tunnel', 'web', ...target, '--json');
    const { port } = JSON.parse(await tunnel.line((line) => line.includes('"listening"')));
    const fetched = products.node(home.host, '-e', `fetch('http://127.0.0.1:${port}/').then((r) => r.text()).then(console.log)`);
    expect(await fetched.succeeded()).toBe('home\n');
    await tunnel.end('SIGINT');
  });
});
