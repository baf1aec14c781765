/**
 * Keep-alive behind Linux's masquerade with the default timeouts of its connection tracking: 30 s after one exchange,
 * 120 s for a flow with packets in both directions. The client must learn the timeout of a lasting flow.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, vi } from 'vitest';
import { record } from '../figures.ts';
import { labWithProducts } from './products.ts';

/** ms: the wait before the first probe, the probe, and some more. */
const LIMIT = 120_000;
const LOOK = 1_000;

vi.setConfig({ testTimeout: LIMIT + 60_000 });

labWithProducts('keep-alive', { keys: 1 }, (lab) => {
  it('learns the timeout of a lasting flow', async () => {
    const { internet, products } = lab;
    const home = internet.home('client', 'port');
    const device = await products.device(internet.home('device', 'open').host, 'de-keep');
    const client = products.client(home.host);
    await client.call('connect', { name: 'it', options: { ...device.options, PrivateKey: products.keys[0]!.pem, Rendezvous: false } });
    const begun = performance.now();
    const look = async () => (await client.call<{ keepAlive: Record<string, unknown> }>('paths', { name: 'it' })).keepAlive;
    let keepAlive = await look();
    expect(keepAlive).toMatchObject({ state: 'learning', interval: 25_000 });
    while (keepAlive.state === 'learning' && performance.now() - begun < LIMIT) {
      await sleep(LOOK);
      keepAlive = await look();
    }
    const took = performance.now() - begun;
    record('timeout of connection tracking learned, s', 'ours', Math.round(took / 1000), { atMost: 100 });
    expect(keepAlive).toMatchObject({ state: 'learned', isAtLeast: true, interval: 55_000, losses: 0 });
    await client.call('request', { name: 'it' });
  });
});
