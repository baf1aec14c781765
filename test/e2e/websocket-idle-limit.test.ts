/** Device and client whose WebSockets lead through a proxy that cuts silent ones, in virtual time. */
import { expect } from 'vitest';
import type { Connection, ConnectionOptions } from '../../client/node.ts';
import type { KeepAliveReport } from '../../runtime/keep-alive/index.ts';
import type { PathsReport } from '../../runtime/rendezvous/index.ts';
import { ProductFixture } from '../support/fixture/products.ts';
import { tiered } from '../support/tiered.ts';

const intervalOf = (connection: Connection): KeepAliveReport['interval'] => connection.paths().keepAlive.interval;

const cells: readonly (readonly [limit: number, cuts: number, interval: number, own: ConnectionOptions])[] = [
  [10_000, 2, 7_500, { KeepAliveInterval: 20_000 }],
  [5_000, 2, 3_750, {}],
  [24_000, 2, 18_000, {}],
  [25_000, 0, 25_000, {}],
  [10_000, 2, 7_500, {}],
];

tiered(cells, 1)(
  'a proxy that cuts after %i ms cuts a device and a client %i times, and then they keep alive each %i ms: %j',
  async (limit, cuts, interval, own) => {
    const fixture = new ProductFixture();
    await fixture.station();
    const opened: Record<string, number> = {};
    fixture.sim.onPipe = (pipe) => {
      // The station answers without TLS only.
      if (pipe.url.startsWith('ws:')) opened[pipe.opener] = (opened[pipe.opener] ?? 0) + 1;
      pipe.limitIdle(limit);
    };
    const machine = fixture.host('client');
    const under = await fixture.device();
    for (const each of [under.host, machine.name]) fixture.sim.block(each, 'udp');
    under.device.addCoapResource('GET', '/hello', () => ({ status: 205, payload: 'hello' }));
    let atDevice = (): PathsReport | null => null;
    under.device.onConnectionEvent((each) => {
      atDevice = () => each.paths();
    });
    await fixture.start(under);
    await fixture.until(under, 'ATTACHED');
    const connection = fixture.connection(own, fixture.client(machine));
    await fixture.settle(connection.connect());
    await fixture.sim.run(3 * limit);
    for (const time of [0, 10 * limit]) {
      await fixture.sim.run(time);
      expect([opened[under.host], opened[machine.name]]).toEqual([1 + cuts, 1 + cuts]);
    }
    expect(Math.abs((intervalOf(connection) ?? 0) - interval)).toBeLessThan(200);
    expect((await fixture.coap(connection, 'GET', '/hello')).text).toBe('hello');
    expect(Math.abs((atDevice()?.keepAlive.interval ?? 0) - interval)).toBeLessThan(200);
  },
);
