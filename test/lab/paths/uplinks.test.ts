/**
 * A client or a device that changes its uplink under transfers, on real stacks: nine changes among a cable, a Wi-Fi and
 * a phone, each with another NAT. A relayed and a direct connection experience them side by side; every byte arrives
 * once, in order.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, vi } from 'vitest';
import type { Child } from '../../../bench/processes/parent.ts';
import type { ConnectionOptions } from '../../../client/node.ts';
import { record } from '../figures.ts';
import { BULK, ECHO_TUNNEL, Echo, startEcho } from './echo.ts';
import type { Side } from './internet.ts';
import { Mobile, SWITCHES } from './mobile.ts';
import { labWithProducts } from './products.ts';

/** ms until a change is noticed, and the stall after that. */
const NOTICE = 1_000;
const STALL = 1_000;
/** ms of observation after a change, and ms within which it has to be over even on a busy machine. */
const LOOK = 2_000;
const LIMIT = 10_000;
/** ms that an uplink is down before it comes back. */
const AWAY = 300;
/** ms for a direct path to be found again. */
const DIRECT = 20_000;
const SIDES: readonly Side[] = ['client', 'device'];

vi.setConfig({ testTimeout: 120_000 });

labWithProducts('an uplink', { keys: 2 }, (lab) => {
  it('that changes nine times, of the client or of the device, stalls transfers for at most a second after it noticed', async () => {
    const results = await Promise.all(SIDES.map(nineSwitches));
    for (const [index, side] of SIDES.entries()) {
      const { relayed, direct } = results[index]!;
      record(`longest stall, nine changes of the ${side}, relayed, ms`, 'ours', relayed, { atMost: NOTICE + STALL });
      record(`longest stall, nine changes of the ${side}, direct, ms`, 'ours', direct, { atMost: NOTICE + STALL });
    }
  });

  /** @returns the longest stall of each connection, ms from the change on */
  async function nineSwitches(side: Side, number: number): Promise<{ relayed: number; direct: number }> {
    const { internet, products } = lab;
    const mobile = new Mobile(internet, side);
    const other = internet.home(side === 'client' ? 'device' : 'client', 'address').host;
    const [clientHost, deviceHost] = side === 'client' ? [mobile.host, other] : [other, mobile.host];
    await startEcho(products, deviceHost);
    const device = await products.device(deviceHost, `de-${side}`, '--no-mdns', ...ECHO_TUNNEL);
    const options = { ...device.options, PrivateKey: products.keys[number]!.pem };
    const relayed = await begin(products.client(clientHost), 'relayed', { ...options, Rendezvous: false });
    const client = products.client(clientHost);
    let direct = await begin(client, 'direct', options);
    const stalls = { relayed: 0, direct: 0 };
    for (const [change, uplink] of SWITCHES.entries()) {
      const text = `${side}, ${mobile.now} to ${uplink}`;
      // A client waits before it searches again for a path that it lost soon: another connection does not.
      if (!(await direct.isDirect())) {
        await end(direct);
        direct = await begin(client, `direct ${change}`, options);
      }
      if (uplink === mobile.now) {
        mobile.leave();
        await sleep(AWAY);
      }
      mobile.use(uplink);
      const since = Date.now();
      await sleep(LOOK);
      for (const [way, echo] of Object.entries({ relayed, direct })) {
        await echo.expectResumed(since, LIMIT, `${text}, ${way}`);
        const { longest } = await echo.stall(since);
        stalls[way as keyof typeof stalls] = Math.max(stalls[way as keyof typeof stalls], longest);
      }
    }
    for (const echo of [relayed, direct]) await end(echo);
    return stalls;
  }

  /** A connection with a transfer over it. */
  async function begin(client: Child, name: string, options: ConnectionOptions): Promise<Echo> {
    await client.call('connect', { name, options });
    const isDirect = options.Rendezvous !== false;
    if (isDirect) expect(await client.call('settled', { name, limit: DIRECT, untilDirect: true })).toMatchObject({ type: 'DIRECT' });
    const echo = new Echo(client, name);
    await echo.begin(BULK);
    return echo;
  }

  /** Every byte arrives, and the connection has not ended. */
  async function end(echo: Echo): Promise<void> {
    expect(await echo.history()).toMatchObject({ closed: null });
    expect(await echo.finish()).toBeGreaterThan(0);
  }
});
