/**
 * Direct paths in trouble: paths that carry one direction, or small packets only; addresses that lead nowhere; a host
 * full of container bridges. The connection survives, every byte arrives, and the cause is reported.
 */
import { beforeAll, expect, it, vi } from 'vitest';
import type { Child } from '../../../bench/processes/parent.ts';
import type { PathsReport } from '../../../runtime/rendezvous/index.ts';
import { record } from '../figures.ts';
import { connect, type Home } from './internet.ts';
import { type LabDevice, labWithProducts, type View } from './products.ts';

/** ms until a dead path is left, and ms for an attempt to end. */
const FAILOVER = 3_000;
const ATTEMPT = 15_000;
const BYTES = 2_000_000;
const BRIDGES = 10;
const MAX_CANDIDATES = 8;
const DEAD = 64;

interface Timed extends View {
  readonly took: number;
}

vi.setConfig({ testTimeout: 60_000 });

labWithProducts('a direct path', { keys: 1 }, (lab) => {
  let home: Home;
  let deviceHome: Home;
  let client: Child;
  let device: LabDevice;
  let made = 0;

  beforeAll(async () => {
    const { internet, products } = lab;
    home = internet.home('client', 'port');
    deviceHome = internet.home('device', 'port');
    for (let number = 0; number < BRIDGES; number++) addBridge(deviceHome, number);
    device = await products.device(deviceHome.host, 'de-trouble', '--no-mdns');
    client = products.client(home.host);
  });

  /** A fresh connection. @returns its name */
  async function connected(more: Record<string, unknown> = {}): Promise<string> {
    const name = `trouble${made++}`;
    await client.call('connect', { name, options: { ...device.options, PrivateKey: lab.products.keys[0]!.pem, ...more } });
    return name;
  }

  async function direct(): Promise<string> {
    const name = await connected();
    expect(await client.call('settled', { name, limit: ATTEMPT, untilDirect: true })).toMatchObject({ type: 'DIRECT', over: 'ipv4' });
    return name;
  }

  /**
   * Runs `work` while the client's edge router drops matching packets between the two homes, of which there must be
   * some. @param rules without verdict
   */
  async function dropping(rules: readonly string[], work: () => Promise<void>): Promise<void> {
    const edge = lab.internet.routers.client[0]!;
    const lines = rules.map((rule) => `meta l4proto udp ${rule} counter drop`);
    edge.nft(`table ip trouble { \n chain forward {\n type filter hook forward priority filter\n ${lines.join('\n')}\n }\n }`);
    try {
      await work();
      expect(edge.run('nft', 'list', 'table', 'ip', 'trouble')).toMatch(/counter packets [1-9]/);
    } finally {
      edge.nft('delete table ip trouble');
    }
  }

  const out = (): string => `ip daddr ${deviceHome.outside}`;
  const back = (): string => `ip saddr ${deviceHome.outside}`;

  it('is found by a host with ten container bridges, which offers at most eight addresses', async () => {
    const name = await connected();
    const { type, took } = await client.call<Timed>('settled', { name, limit: ATTEMPT, untilDirect: true });
    expect(type).toBe('DIRECT');
    record('direct to a host with ten bridges, ms', 'ours', took, { atMost: 1_000 });
    const { pairs } = await client.call<PathsReport>('paths', { name });
    expect(pairs.filter(({ kind }) => kind !== 'peer-reflexive').length).toBeLessThanOrEqual(MAX_CANDIDATES);
    expect(pairs.map(({ address }) => address)).toContain('192.168.1.20');
    await client.call('close', { name });
  });

  it.each([
    ['nothing reaches the device', () => [out()]],
    ['nothing comes back', () => [back()]],
    ['nothing passes', () => [out(), back()]],
  ])('is left within 3 s when %s, in the middle of a transfer, and found again', async (_, rules) => {
    const name = await direct();
    const transfer = client.call<number>('transfer', { name, bytes: BYTES });
    await dropping(rules(), async () => {
      const took = await client.call<number | null>('becomes', { name, over: 'relay', limit: ATTEMPT });
      expect(took).not.toBeNull();
      record(`back on the relay, ${_}, ms`, 'ours', took!, { atMost: FAILOVER });
      await transfer;
    });
    expect(await client.call('becomes', { name, over: 'ipv4', limit: 2 * ATTEMPT })).not.toBeNull();
    await client.call('close', { name });
  });

  it('that carries one direction only is not used, and the reason is reported', async () => {
    await dropping([out()], async () => {
      const name = await connected();
      expect(await client.call('settled', { name, limit: ATTEMPT })).toMatchObject({ type: 'RELAY', why: 'ONE_WAY' });
      await client.call('transfer', { name, bytes: BYTES });
      await client.call('close', { name });
    });
  });

  it('that drops packets above 1,300 bytes carries every byte in smaller ones', async () => {
    const name = await direct();
    const rules = [`${out()} ip length > 1300`, `${back()} ip length > 1300`];
    await dropping(rules, async () => {
      record('2 MB there and back, packets above 1,300 bytes dropped, ms', 'ours', await client.call('transfer', { name, bytes: BYTES }));
      expect(await client.call('view', { name })).toMatchObject({ type: 'DIRECT' });
    });
    await client.call('close', { name });
  });

  it('that drops packets of 1,200 bytes is not used, the reason is reported, and svc doctor suggests a remedy', async () => {
    await dropping([`${out()} ip length > 1000`, `${back()} ip length > 1000`], async () => {
      const name = await connected();
      expect(await client.call('settled', { name, limit: ATTEMPT })).toMatchObject({ type: 'RELAY', why: 'LARGE_DROPPED' });
      await client.call('transfer', { name, bytes: BYTES });
      await client.call('close', { name });
      const { ServerUrl, ServerFingerprint, ServerConnectToken, ProductId, DeviceId, DeviceFingerprint } = device.options;
      const station = ['--server', ServerUrl!, '--server-fingerprint', ServerFingerprint!, '--sct', ServerConnectToken!];
      const target = ['--product', ProductId!, '--device-id', DeviceId!, '--fingerprint', DeviceFingerprint!];
      const state = ['--state', `${lab.products.folder}/doctor`, '--no-local'];
      expect(await lab.products.svc(home.host, 'doctor', ...target, ...station, ...state).succeeded()).toMatch(/LARGE_DROPPED.*MTU/s);
    });
  });

  it('that begins to drop packets of 1,200 bytes is left, and every byte arrives', async () => {
    const name = await direct();
    const transfer = client.call('transfer', { name, bytes: BYTES });
    await dropping([`${out()} ip length > 1000`, `${back()} ip length > 1000`], async () => {
      expect(await client.call('becomes', { name, over: 'relay', limit: ATTEMPT })).not.toBeNull();
      await transfer;
    });
    await client.call('close', { name });
  });

  it('is established although 64 addresses are dead', async () => {
    lab.internet.core.ip('route add blackhole 198.19.0.0/24');
    const candidates = Array.from({ length: DEAD }, (_, index) => [`198.19.0.${index + 1}`, 5592]);
    const options = { ...device.options, PrivateKey: lab.products.keys[0]!.pem };
    const { took } = await client.call<Timed>('connect', { name: 'alone', options });
    const { took: among } = await client.call<Timed>('connect', { name: 'among', options, candidates });
    record('connect beside 64 dead addresses, ms more', 'ours', among - took, { atMost: 1_000 });
    expect(await client.call('settled', { name: 'among', limit: ATTEMPT, untilDirect: true })).toMatchObject({ type: 'DIRECT' });
    for (const name of ['alone', 'among']) await client.call('close', { name });
  });
});

/** A bridge like those of container programs, with a container that is connected. */
function addBridge({ host }: Home, number: number): void {
  const name = number === 0 ? 'docker0' : `br-${String(number).padStart(12, '0')}`;
  host.ip(`link add ${name} type bridge\naddress add 172.${17 + number}.0.1/16 dev ${name}\nlink set dev ${name} up`);
  connect([host, `veth${number}`, []], [host, `inside${number}`, []]);
  host.ip(`link set dev veth${number} master ${name}`);
}
