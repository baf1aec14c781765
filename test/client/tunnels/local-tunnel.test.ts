/** What opening a tunnel meets: a close at each step, and an answer that is none. */
import { expect, test } from 'vitest';
import type { TunnelListener } from '../../../client/platform.ts';
import { LocalTunnel } from '../../../client/tunnels/local-tunnel.ts';
import { Router } from '../../../protocol/coap/index.ts';
import { encodeTunnelService } from '../../../protocol/records/index.ts';
import type { Session } from '../../../runtime/session/index.ts';
import { codeOf } from '../../support/code-of.ts';
import { DEVICE_PORT, ids } from '../../support/fixture/identifiers.ts';
import { ProductFixture } from '../../support/fixture/products.ts';

test.each(['tcp', 'udp'] as const)('%s: stops while the device decides', async (kind) => {
  const fixture = await ProductFixture.withStation();
  const { device } = await fixture.attached();
  device.addTcpTunnelService({ id: 'web', type: 'http', host: '127.0.0.1', port: 8080 });
  device.addUdpTunnelService({ id: 'web', type: 'http', host: '127.0.0.1', port: 8080 });
  device.onAuthorizationRequest(() => new Promise<boolean>(() => {}));
  const connection = await fixture.connected();
  const tunnel = kind === 'tcp' ? connection.createTcpTunnel() : connection.createUdpTunnel();
  const opening = tunnel.open('web');
  await fixture.sim.run(1_000);
  await tunnel.close();
  expect(await fixture.code(opening)).toBe('STOPPED');
  expect(await fixture.code(tunnel.close())).toBe('INVALID_STATE');
});

test('stops while it begins to listen: the port is free again', async () => {
  let listening: (listener: TunnelListener) => void = () => {};
  const payload = encodeTunnelService({ id: 'web', type: 'http', host: '127.0.0.1', port: 80, streamPort: 0x8000_0000, metadata: {} });
  const session = { isOpen: true, closed: new Promise(() => {}), request: async () => ({ status: 205, payload }) } as unknown as Session;
  const tunnel = new LocalTunnel<TunnelListener>(() => session, 'tcp');
  let closed = 0;
  const opening = tunnel.open('web', 0, () => new Promise<TunnelListener>((resolve) => (listening = resolve)));
  await new Promise(setImmediate);
  await tunnel.close();
  listening({ port: 1, close: async () => void closed++ });
  expect(await codeOf(() => opening)).toBe('STOPPED');
  expect(closed).toBe(1);
  expect(() => tunnel.listener).toThrow(expect.objectContaining({ code: 'INVALID_STATE' }));
});

test('is refused with PARSE by a malformed answer of the device, and may be opened again', async () => {
  const fixture = new ProductFixture();
  const router = new Router<Session>();
  router.on('GET', '/tcp-tunnels/connect/{id}', () => ({ status: 205, contentFormat: 60, payload: Uint8Array.of(0xff) }));
  await fixture.raw.device({ machine: 'strange', router });
  const connection = fixture.directConnection('strange', DEVICE_PORT, { ProductId: ids.productId, DeviceId: ids.deviceId });
  await fixture.settle(connection.connect());
  const tunnel = connection.createTcpTunnel();
  for (const code of ['PARSE', 'PARSE']) expect(await fixture.code(tunnel.open('web'))).toBe(code);
});
