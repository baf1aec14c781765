/**
 * Links that are down for 5 or 60 s, on real stacks: the client's or the device's, at the host, which notices, or
 * behind its router, where packets vanish. A relayed and a direct connection with the default keep-alive pause under
 * transfers and resume; every byte arrives once, in order. And bad links: `ladder.ts`, during the minute of outage.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, expect, it, vi } from 'vitest';
import type { Child } from '../../../bench/processes/parent.ts';
import { record } from '../figures.ts';
import { ECHO_TUNNEL, Echo, startEcho, TRICKLE } from './echo.ts';
import type { Home, Side } from './internet.ts';
import { Ladder } from './ladder.ts';
import { type LabDevice, labWithProducts } from './products.ts';

/** ms for a direct path, and for a connection to resume on a busy machine. */
const DIRECT = 20_000;
const LIMIT = 30_000;
/**
 * ms from the link's return to the first byte, by the length of the outage. A device that lost its channel attaches
 * again with a back-off of at most 4 s.
 */
const GOALS: Readonly<Record<number, number>> = { 5000: 3_500, 60000: 6_000 };
const WAYS = ['relayed', 'direct'] as const;

interface Outage {
  readonly side: Side;
  readonly where: 'host' | 'line';
  readonly time: number;
}

interface Scene extends Outage {
  readonly home: Home;
  readonly echoes: readonly Echo[];
}

const OUTAGES: readonly Outage[] = [5_000, 60_000].flatMap((time) =>
  (['client', 'device'] as const).flatMap((side) => (['host', 'line'] as const).map((where) => ({ side, where, time }))),
);

vi.setConfig({ testTimeout: 150_000, hookTimeout: 120_000 });

labWithProducts('a link', { keys: OUTAGES.length }, (lab) => {
  const scenes: Scene[] = [];
  let ladder: Ladder;
  /** Outages of 60 s: begun with the first test, since the others run meanwhile. */
  let minute: Promise<unknown> | undefined;

  /** One device for all clients that lose their links, one client for all such devices. */
  beforeAll(async () => {
    const { internet, products } = lab;
    const deviceHost = internet.home('device', 'port').host;
    await startEcho(products, deviceHost);
    const device = await products.device(deviceHost, 'de-stays', '--no-mdns', ...ECHO_TUNNEL);
    const client = products.client(internet.home('client', 'port').host);
    for (const [index, outage] of OUTAGES.entries()) {
      const home = internet.home(outage.side, 'port');
      const ends =
        outage.side === 'client' ? { client: products.client(home.host), device } : { client, device: await movable(home, index) };
      scenes.push({ ...outage, home, echoes: await transfers(ends, index) });
    }
    ladder = await Ladder.open(lab);
  });

  async function movable({ host }: Home, index: number): Promise<LabDevice> {
    await startEcho(lab.products, host);
    return lab.products.device(host, `de-${index}`, '--no-mdns', ...ECHO_TUNNEL);
  }

  /** Starts one of each type. */
  function transfers({ client, device }: { client: Child; device: LabDevice }, index: number): Promise<Echo[]> {
    return Promise.all(
      WAYS.map(async (way) => {
        const echo = new Echo(client, `${way} ${index}`);
        const options = { ...device.options, PrivateKey: lab.products.keys[index]!.pem, Rendezvous: way === 'direct' };
        await client.call('connect', { name: echo.name, options });
        if (way === 'direct')
          expect(await client.call('settled', { name: echo.name, limit: DIRECT, untilDirect: true })).toMatchObject({ type: 'DIRECT' });
        await echo.begin(TRICKLE);
        return echo;
      }),
    );
  }

  it('that is down for 5 s pauses transfers, which resume when it is back', async () => {
    minute = all(60_000);
    minute.catch(() => {});
    await all(5_000);
  });

  it('of each rung of a ladder, from good to awful, carries every byte, and requests beside it', () => ladder.climb());

  it('that is down for 60 s pauses transfers, which resume when it is back', () => minute ?? all(60_000));

  function all(wanted: number): Promise<unknown> {
    return Promise.all(scenes.filter(({ time }) => time === wanted).map(outage));
  }

  async function outage({ side, where, time, home, echoes }: Scene): Promise<void> {
    const [box] = home.boxes;
    const [at, device] = where === 'host' ? [home.host, 'eth0'] : [box!, 'wan'];
    const routes = at.run('ip', 'route', 'show', 'default').trim();
    at.ip(`link set dev ${device} down`);
    await sleep(time);
    at.ip(`link set dev ${device} up\nroute add ${routes}`);
    const back = Date.now();
    await Promise.all(
      echoes.map(async (echo, index) => {
        const text = `${WAYS[index]}, ${side}'s ${where === 'host' ? 'link' : 'line'} down for ${time / 1000} s`;
        const first = await echo.resumed(back, LIMIT);
        const history = await echo.history();
        expect([text, history.closed, first !== null]).toEqual([text, null, true]);
        record(`${text}, until it resumes, ms`, 'ours', first!, { atMost: GOALS[time]! });
        await echo.client.call('request', { name: echo.name });
        expect(await echo.finish()).toBeGreaterThan(0);
      }),
    );
  }
});
