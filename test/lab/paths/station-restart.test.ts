/**
 * A base station that is killed under a transfer, and one that is restarted under fifty: relayed connections pause and
 * resume; a direct one continues without a pause and has a relay as fallback again. Every byte arrives once, in order.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, expect, it, vi } from 'vitest';
import type { Child } from '../../../bench/processes/parent.ts';
import { percentile } from '../../../bench/report.ts';
import type { PathsReport } from '../../../runtime/rendezvous/index.ts';
import { record } from '../figures.ts';
import type { Namespace } from '../namespaces.ts';
import { BULK, ECHO_TUNNEL, Echo, startEcho, TRICKLE } from './echo.ts';
import { type LabDevice, labWithProducts } from './products.ts';

const DEVICES = 5;
const TRANSFERS = 50;
/** ms of traffic before, and without a base station. */
const BEFORE = 1_000;
const DOWN = 2_000;
/** ms from when it listens to the first byte: the goal, and the limit on a busy machine. */
const GOAL = 5_000;
const LIMIT = 30_000;
const DIRECT = 15_000;
/** Limit of a pause of a direct transfer on a busy machine, ms. */
const NOTHING = 1_000;

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

labWithProducts('a base station', { keys: 1 }, (lab) => {
  const devices: LabDevice[] = [];
  let clientHost: Namespace;
  let direct: Echo;

  beforeAll(async () => {
    const { internet, products } = lab;
    const { host } = internet.home('device', 'port');
    clientHost = internet.home('client', 'port').host;
    await startEcho(products, host);
    const free = ['--local-port', '0', '--p2p-port', '0', '--no-mdns'];
    for (let number = 0; number < DEVICES; number++) devices.push(await products.device(host, `de-${number}`, ...free, ...ECHO_TUNNEL));
    direct = new Echo(products.client(clientHost), 'direct');
    await connect(direct, devices[0]!, true);
    expect(await direct.client.call('settled', { name: 'direct', limit: DIRECT, untilDirect: true })).toMatchObject({ type: 'DIRECT' });
    await direct.begin(BULK);
  });

  function connect({ client, name }: Echo, { options }: LabDevice, isDirect: boolean): Promise<unknown> {
    return client.call('connect', { name, options: { ...options, PrivateKey: lab.products.keys[0]!.pem, Rendezvous: isDirect } });
  }

  async function relayed(client: Child, name: string, device: LabDevice, load: typeof BULK): Promise<Echo> {
    const echo = new Echo(client, name);
    await connect(echo, device, false);
    await echo.begin(load);
    return echo;
  }

  /**
   * Ends the base station and starts it again. The direct connection continues without a pause. @returns when it
   * listens, ms since the epoch
   */
  async function restart(signal: NodeJS.Signals): Promise<number> {
    await sleep(BEFORE);
    const begun = Date.now();
    await lab.products.stopStation(signal);
    await sleep(DOWN);
    const { longest } = await direct.stall(begun);
    record(`stall of a direct transfer without its base station, ${signal}, ms`, 'ours', longest, { atMost: NOTHING });
    await lab.products.startStation(lab.internet.core);
    return Date.now();
  }

  it('that is restarted under fifty transfers pauses them, until 5 s after it listens again at the latest', async () => {
    const clients = devices.map(() => lab.products.client(clientHost));
    // Each process has connections to all devices.
    const each = (number: number) =>
      relayed(clients[number % DEVICES]!, `relayed ${number}`, devices[Math.floor(number / DEVICES) % DEVICES]!, TRICKLE);
    const echoes: Echo[] = [];
    while (echoes.length < TRANSFERS) {
      const next = Array.from({ length: DEVICES }, (_, index) => echoes.length + index);
      echoes.push(...(await Promise.all(next.map(each))));
    }
    const up = await restart('SIGTERM');
    const firsts = await Promise.all(echoes.map((echo) => echo.expectResumed(up, LIMIT, echo.name)));
    record('base station restarted under 50 transfers, first byte of half of them, ms', 'ours', percentile(firsts, 50));
    record('base station restarted under 50 transfers, first byte of the last, ms', 'ours', Math.max(...firsts), { atMost: GOAL });
    for (const echo of echoes) {
      expect(await echo.history()).toMatchObject({ closed: null, rests: 1 });
      expect(await echo.finish()).toBeGreaterThan(0);
    }
  });

  it('that is killed under a transfer pauses it, until 5 s after it listens again at the latest', async () => {
    const echo = await relayed(lab.products.client(clientHost), 'relayed', devices[0]!, BULK);
    const up = await restart('SIGKILL');
    const first = await echo.expectResumed(up, LIMIT, 'relayed');
    record('base station killed under a transfer, from when it listens to the first byte, ms', 'ours', first, { atMost: GOAL });
    expect(await echo.history()).toMatchObject({ closed: null, rests: 1 });
    expect(await echo.finish()).toBeGreaterThan(0);
  });

  it('that is back is the fallback of the direct connection again', async () => {
    const relays = async () => {
      const { paths } = await direct.client.call<PathsReport>('paths', { name: 'direct' });
      return paths.filter(({ over }) => over === 'relay').map(({ active }) => active);
    };
    await vi.waitFor(async () => expect(await relays()).toEqual([false]), { timeout: LIMIT, interval: 200 });
    expect(await direct.history()).toMatchObject({ closed: null, rests: 0 });
    expect(await direct.isDirect()).toBe(true);
    expect(await direct.finish()).toBeGreaterThan(0);
  });
});
