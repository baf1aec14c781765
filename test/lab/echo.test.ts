/**
 * Small exchanges at 100 Mbit/s and 50 ms round trip: the first echo of a new connection, echoes on an open one under
 * loss, and CoAP requests beside an upload on the same connection.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { ours } from '../../bench/echo.ts';
import { program, withChildren } from '../../bench/processes/parent.ts';
import { percentile } from '../../bench/report.ts';
import { record } from './figures.ts';
import { lab, overLink, withContenders } from './lab.ts';
import { FAR_ADDRESS } from './link.ts';

const CONNECTIONS = 15;
const ECHOES = 1000;
const REQUESTS = 300;
/** ms until an upload has found its rate. */
const SETTLE = 3_000;

const RTT = 50;
const link = { rate: 100, delay: RTT / 2, queue: 625_000, seed: 11 };
const device = { productId: 'pr-lab', deviceId: 'de-lab' };

lab('echo', () => {
  it('comes back over each new connection', async () => {
    const first: number[] = [];
    await overLink(link, async (over) => {
      await withContenders(over, ours, (contenders) =>
        contenders.each(async ({ name, near, address }) => {
          const times: number[] = [];
          for (let index = 0; index < CONNECTIONS; index++) times.push(await near.call<number>('firstEcho', { address }));
          record('first echo of a new connection, median, ms', name, percentile(times, 50), isOurs(name) ? { atMost: 105 } : {});
          if (isOurs(name)) first.push(...times);
        }),
      );
    });
    expect(first.length).toBe(CONNECTIONS * ours.length);
    // Nothing is faster than one round trip.
    expect(Math.min(...first)).toBeGreaterThan(RTT);
  });

  it('comes back every time at 5 % loss', async () => {
    const counters = await overLink({ ...link, loss: 5 }, async (over) => {
      await withContenders(over, ours, (contenders) =>
        contenders.together(async ({ name, near }) => {
          const times = (await near.call<number[]>('echo', { count: ECHOES })).map((microseconds) => microseconds / 1000);
          expect(times.length).toBe(ECHOES);
          record('echo at 5 % loss, p50, ms', name, percentile(times, 50));
          record('echo at 5 % loss, p99, ms', name, percentile(times, 99), isOurs(name) ? { atMost: 110 } : {});
        }),
      );
    });
    expect(counters.ab.lost).toBeGreaterThan(0);
  });
});

lab('a CoAP request', () => {
  it('is answered while the same connection uploads', async () => {
    const [idle, busy] = [[] as number[], [] as number[]];
    await overLink(link, (over) =>
      withChildren(async (start) => {
        const [far, near] = [start(over.far.inside(program('device'))), start(over.near.inside(program('client')))];
        const { fingerprint: deviceFingerprint } = await far.call<{ fingerprint: string }>('identity');
        const { localPort } = await far.call<{ localPort: number }>('start', device);
        await near.call('connect', { name: 'direct', options: { ...device, deviceFingerprint, host: FAR_ADDRESS, localPort } });
        const ask = { name: 'direct', count: REQUESTS, flight: 1 };
        idle.push(...(await near.call<number[]>('requests', ask)));
        await near.call('beginUpload', { name: 'direct' });
        await sleep(SETTLE);
        busy.push(...(await near.call<number[]>('requests', ask)));
        record('upload beside CoAP requests, Mbit/s', 'ours', 8 * (await near.call<number>('endUpload', { name: 'direct' })));
      }),
    );
    expect([idle.length, busy.length]).toEqual([REQUESTS, REQUESTS]);
    const [least, most] = [percentile(idle, 99), percentile(busy, 99)];
    record('CoAP request, idle, p99, ms', 'ours', least / 1000);
    record('CoAP request under upload, p99, ms', 'ours', most / 1000, { atMost: (3 * least) / 1000 });
  });
});

function isOurs(name: string): boolean {
  return ours.some((each) => each.name === name);
}
