/**
 * A host that answers from another address than the one where it was reached, like one with several addresses and an
 * unbound socket.
 */
import { expect, test } from 'vitest';
import { Router } from '../../../protocol/coap/index.ts';
import type { Session } from '../../../runtime/session/index.ts';
import { DEVICE_NAME, DEVICE_PORT } from '../../support/fixture/identifiers.ts';
import { SessionFixture } from '../../support/fixture/sessions.ts';

const RTT = 20;

test('is served, and asked for its address at most every three seconds: the answers cause no further questions', async () => {
  const fixture = new SessionFixture({ link: { delay: RTT / 2 } });
  const router = new Router<Session>().on('GET', '/hello', () => ({ status: 205 }));
  await fixture.device({ addresses: ['10.0.0.1/24', '10.9.0.1/24'], router });
  const client = await fixture.client({ addresses: ['10.1.0.2/24'] });
  let [large, fromElsewhere] = [0, 0];
  fixture.sim.onTrace = ({ from, source, data }, fate) => {
    if (fate !== 'delivered') return;
    if (data.length >= 1_200) large++;
    if (from === 'device1' && source.address !== '10.9.0.1') fromElsewhere++;
  };
  const session = await fixture.sim.settle(client.host.dials.connect({ name: DEVICE_NAME, address: '10.9.0.1', port: DEVICE_PORT }));
  large = 0;
  for (let request = 0; request < 60; request++) {
    expect((await fixture.sim.settle(session.request({ method: 'GET', path: '/hello' }))).status).toBe(205);
    await fixture.sim.run(200);
  }
  expect(fromElsewhere).toBeGreaterThan(60);
  // 13 s: five checks of two paths each, and the same from the other end.
  expect(large).toBeLessThanOrEqual(20);
  expect(session.paths.active.address).toBe('10.9.0.1');
});
