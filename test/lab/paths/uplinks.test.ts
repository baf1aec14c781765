/**
 * A client or a device that changes its uplink under transfers, on real stacks: nine changes among a cable, a Wi-Fi and a phone, each with another NAT. A relayed and a
 * direct connection go through them side by side; every byte arrives once, in order.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, vi } from 'vitest';
import { record } from '../figures.ts';
import { BULK, Echo, ECHO_TUNNEL, startEcho } from './echo.ts';
import type { Side } from './internet.ts';
import { Mobile, SWITCHES } from './mobile.ts';
import { labWithProducts } from './products.ts';

/** ms until a change is noticed, and the stall after that. */
const NOTICE = 1_000;
const STALL = 1_000;
/** ms that a change is looked at, and within which it has to be over even on a busy machine. */
const LOOK = 2_000;
const LIMIT = 10_000;
/** ms that an uplink is down which comes back. */
const AWAY = 300;
/** ms for a direct path to be found again. */
const DIRECT = 20_000;
const SIDES: readonly Side[] = ['client', 'device'];

vi.setConfig({ testTimeout: 120_000 });

labWithProducts('an uplink', { keys: 2 }, (lab) => {
  it('that changes nine times, of the client or of the device, stalls transfers for a second at most after that was noticed', async () => {
    const results = await Promise.all(SIDES.map(nineSwitches));
    for (const [index, side] of SIDES.entries()) {
      const { relayed, direct } = results[index]!;
      record(`longest stall, nine changes of the ${side}, relayed, ms`, 'ours', relayed, { atMost: NOTICE + STALL });
      record(`longest stall, nine changes of the ${side}, direct, ms`, 'ours', direct, { atMost: NOTICE + STALL });
    }
  });

  /** @returns the longest stall of each way, ms from the change on */
  async function nineSwitches(side: Side, number: number): Promise<{ relayed: number; direct: number }> {
    const { internet, products } = lab;
    const mobile = new Mobile(internet, side);
    const other = internet.home(side === 'client' ? 'device' : 'client', 'address').host;
    const [clientHost, deviceHost] = side === 'client' ? [mobile.host, other] : [other, mobile.host];
    await startEcho(products, deviceHost);
    const device = await products.device(deviceHost, `de-${side}`, '--no-mdns', ...ECHO_TUNNEL);
    const options = { ...device.options, PrivateKey: products.keys[number]!.pem };
    const relayed = new Echo(products.client(clientHost), 'relayed');
    const direct = new Echo(products.client(clientHost), 'direct');
    await relayed.client.call('connect', { name: 'relayed', options: { ...options, Rendezvous: false } });
    await direct.client.call('connect', { name: 'direct', options });
    await direct.client.call('settled', { name: 'direct', limit: DIRECT, untilDirect: true });
    for (const echo of [relayed, direct]) await echo.begin(BULK);
    const stalls: { text: string; relayed: number; direct: number; found: number | null }[] = [];
    for (const uplink of SWITCHES) {
      const text = `${mobile.now} to ${uplink}`;
      if (uplink === mobile.now) {
        mobile.leave();
        await sleep(AWAY);
      }
      mobile.use(uplink);
      const since = Date.now();
      await sleep(LOOK);
      for (const echo of [relayed, direct]) expect(await echo.resumed(since + 1, LIMIT), `${side}, ${text}, ${echo.name}`).not.toBeNull();
      const [r, d] = await Promise.all([relayed.stall(since), direct.stall(since)]);
      const found = await direct.client.call<number | null>('becomes', { name: 'direct', over: 'ipv4', limit: DIRECT });
      stalls.push({ text, relayed: r.longest, direct: d.longest, found });
    }
    if (process.env.SVC_LAB_VERBOSE) console.table(stalls);
    for (const echo of [relayed, direct]) {
      expect((await echo.history()).closed).toBeNull();
      expect(await echo.finish()).toBeGreaterThan(0);
    }
    const most = (way: 'relayed' | 'direct') => Math.max(...stalls.map((each) => each[way]));
    return { relayed: most('relayed'), direct: most('direct') };
  }
});
