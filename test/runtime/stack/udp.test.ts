/**
 * The same stack over real sockets of Node, in one process.
 *
 * @module-tag slow
 */
import { createHash } from 'node:crypto';
import { networkInterfaces } from 'node:os';
import { afterEach, describe, expect, it } from 'vitest';
import type { Environment } from '../../../platform/environment.ts';
import { nodeEnvironment } from '../../../platform/node/environment.ts';
import { Router } from '../../../protocol/coap/index.ts';
import { Host } from '../../../runtime/host/index.ts';
import type { Session } from '../../../runtime/session/index.ts';
import { Random } from '../../../testing/random.ts';
import { openedStream } from '../../support/opened-stream.ts';
import { NAME, roundTrip } from './support.ts';

const environment = nodeEnvironment();
const hosts: Host[] = [];
const hasIpv6 = Object.values(networkInterfaces()).some((list) => list?.some(({ address }) => address === '::1'));

afterEach(async () => {
  await Promise.all(hosts.splice(0).map((host) => host.close()));
});

async function pair(of: Environment = environment): Promise<{ device: Host; client: Host }> {
  const router = new Router<Session>();
  router.on('GET', '/local', (request) => ({ status: 205, payload: new TextEncoder().encode(`${request.context.paths.isLocal}`) }));
  const device = await Host.open(of, {
    identity: environment.crypto.generateKey(),
    binds: [{ port: 0 }, { port: 0, local: true }],
    responder: (path) => (path.local ? [NAME, 'device'] : [NAME]),
    acceptStreams: true,
    router,
    onSession: (session) => {
      session.onStream = async (incoming) => {
        const stream = incoming.accept();
        try {
          for (;;) await stream.write(await stream.read());
        } catch {
          await stream.close().catch(() => {});
        }
      };
    },
  });
  const client = await Host.open(of, { identity: environment.crypto.generateKey(), binds: [{ port: 0 }] });
  hosts.push(device, client);
  return { device, client };
}

describe('over UDP of this host', () => {
  it.each(['127.0.0.1', ...(hasIpv6 ? ['::1'] : [])])('connects, sends requests and streams over %s', async (address) => {
    const { device, client } = await pair();
    const session = await client.dials.connect({
      address,
      port: device.sockets.bound[0]!.port,
      name: NAME,
      pin: device.fingerprint,
      firstTimeout: 250,
    });
    expect(session.peer.verified).toBe('pinned');
    const response = await session.request({ method: 'GET', path: '/local' });
    expect([response.status, new TextDecoder().decode(response.payload)]).toEqual([205, 'false']);
    const data = new Random('udp').bytes(1024 * 1024);
    const back = await roundTrip(await openedStream(session, 7), data);
    const sha = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');
    expect(sha(back)).toBe(sha(data));
    expect([device.stats(), client.stats()]).toMatchObject([
      { failures: 0, dropped: 0 },
      { failures: 0, dropped: 0 },
    ]);
  });

  it('discovers that loopback carries large packets, where slots are large enough', async () => {
    const large = nodeEnvironment({ maxPacketSize: 65_000 });
    const { device, client } = await pair(large);
    const session = await client.dials.connect({ address: '127.0.0.1', port: device.sockets.bound[0]!.port, name: NAME });
    const data = new Random('large').bytes(16 * 1024 * 1024);
    // A probe that a busy host loses is sent again later: one transfer is enough for most, and a few for all.
    for (let transfer = 0; transfer < 10 && session.stats().packetSize < 65_000; transfer++) {
      const back = await roundTrip(await openedStream(session, 7), data);
      expect(Buffer.compare(back, data)).toBe(0);
    }
    expect(session.stats().packetSize).toBe(65_000);
  });

  it('is local on the local socket, under the name without ids', async () => {
    const { device, client } = await pair();
    const target = { address: '127.0.0.1', name: 'device', firstTimeout: 250 } as const;
    const session = await client.dials.connect({ ...target, port: device.sockets.bound[1]!.port });
    const response = await session.request({ method: 'GET', path: '/local' });
    expect(new TextDecoder().decode(response.payload)).toBe('true');
    await expect(client.dials.connect({ ...target, port: device.sockets.bound[0]!.port, timeout: 700 })).rejects.toMatchObject({
      code: 'TIMEOUT',
    });
  });

  it('closes a session at the peer when its socket is unbound, before it closes the socket', async () => {
    const { device, client } = await pair();
    const session = await client.dials.connect({ address: '127.0.0.1', port: device.sockets.bound[0]!.port, name: NAME });
    await session.request({ method: 'GET', path: '/local' });
    const [accepted] = [...device.sessions];
    await client.sockets.unbind(client.sockets.bound[0]!);
    expect([(await session.closed)?.code, (await accepted!.closed)?.code]).toEqual(['STOPPED', 'CLOSED']);
    const socket = await client.sockets.bind({ port: 0 });
    const next = await client.dials.connect({ address: '127.0.0.1', port: device.sockets.bound[0]!.port, name: NAME });
    expect([next.paths.active.socket, (await next.request({ method: 'GET', path: '/local' })).status]).toEqual([socket.index, 205]);
  });

  it('sends 500 requests, 20 at a time', async () => {
    const { device, client } = await pair();
    const session = await client.dials.connect({ address: '127.0.0.1', port: device.sockets.bound[0]!.port, name: NAME });
    let left = 500;
    const worker = async (): Promise<void> => {
      while (left-- > 0) expect((await session.request({ method: 'GET', path: '/local' })).status).toBe(205);
    };
    await Promise.all(Array.from({ length: 20 }, worker));
    expect(device.stats()).toMatchObject({ failures: 0 });
  });
});
