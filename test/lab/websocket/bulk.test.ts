/**
 * CoAP requests beside a bulk transfer over a WebSocket, at 10 Mbit/s and 50 ms round trip: TCP carries both, so
 * requests wait behind data sent before.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { type Child, program, withChildren, withDirectory } from '../../../bench/processes/parent.ts';
import { percentile } from '../../../bench/report.ts';
import { record } from '../figures.ts';
import { lab, overLink } from '../lab.ts';
import { FAR_ADDRESS } from '../link.ts';

/** One bandwidth-delay product of queue. */
const link = { rate: 10, delay: 25, queue: 62_500, seed: 19 };
const device = { productId: 'pr-lab', deviceId: 'de-lab' };
/** ms until a transfer has found its rate. */
const SETTLE = 2_000;
const REQUESTS = 30;
const MOST = 300;
const name = 'blocked';

/** Silent, like a firewall on the path. */
const NO_UDP = 'table ip company {\n chain input {\n type filter hook input priority filter\n iifname "lab" meta l4proto udp drop\n }\n }';

lab('over a WebSocket a CoAP request', () => {
  it('is answered while the same connection carries bulk data, either way', async () => {
    await withDirectory((data) =>
      overLink(link, (over) =>
        withChildren(async (start) => {
          over.far.nft(NO_UDP);
          const station = start(over.far.inside(program('station')));
          const far = start(over.far.inside(program('device')));
          const near = start(over.near.inside(program('client')));
          const { fingerprint: deviceFingerprint, sct } = await far.call<{ fingerprint: string; sct: string }>('identity');
          const place = await station.call<{ port: number; fingerprint: string }>('start', { data, ...device, deviceFingerprint });
          await far.call('start', { ...device, station: place });
          await near.call('connect', { name, options: { ...device, deviceFingerprint, sct, station: { ...place, host: FAR_ADDRESS } } });
          expect(await near.call('stationOver', { name })).toBe('websocket');
          for (const way of ['Upload', 'Download']) await measure(near, way);
        }),
      ),
    );
  });
});

async function measure(near: Child, way: string): Promise<void> {
  await near.call(`begin${way}`, { name });
  await sleep(SETTLE);
  const times = await near.call<number[]>('requests', { name, count: REQUESTS, flight: 1 });
  expect(times.length).toBe(REQUESTS);
  record(`UDP blocked, 10 Mbit/s, CoAP p95 beside ${way.toLowerCase()}, ms`, 'ours', percentile(times, 95) / 1000, { atMost: MOST });
  record(`UDP blocked, 10 Mbit/s, ${way.toLowerCase()}, Mbit/s`, 'ours', 8 * (await near.call<number>(`end${way}`, { name })));
}
