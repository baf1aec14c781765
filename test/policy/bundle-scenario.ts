/**
 * Two simulated hosts over a lossy link: handshake with a pinned fingerprint, one CoAP request, one echoed byte stream.
 * Runs in a bare context.
 */
import { fingerprint, Router } from '../../protocol/index.ts';
import { Host, type Session, Simulation } from '../../testing/index.ts';
import { openedStream } from '../support/opened-stream.ts';

export async function scenario(): Promise<Record<string, unknown>> {
  const simulation = new Simulation({ seed: 7, link: { delay: 5, loss: 0.02 } });
  const device = simulation.host('device', { addresses: ['10.0.0.1/24'] });
  const client = simulation.host('client', { addresses: ['10.0.0.2/24'] });
  return simulation.settle(run(device, client));
}

async function run(device: Parameters<typeof Host.open>[0], client: Parameters<typeof Host.open>[0]): Promise<Record<string, unknown>> {
  const router = new Router<Session>();
  router.on('GET', '/hello', () => ({ status: 205, payload: new TextEncoder().encode('hello') }));
  const key = device.crypto.generateKey();
  await Host.open(device, {
    identity: key,
    binds: [{ port: 5592 }],
    responder: () => ['device'],
    acceptStreams: true,
    router,
    onSession: (session) => {
      session.onStream = (incoming) => void echo(incoming.accept());
    },
  });
  const host = await Host.open(client, { identity: client.crypto.generateKey(), binds: [{ port: 0 }] });
  const session = await host.dials.connect({
    address: '10.0.0.1',
    port: 5592,
    name: 'device',
    pin: fingerprint(key.publicKey, client.crypto),
  });
  const response = await session.request({ method: 'GET', path: '/hello' });

  const stream = await openedStream(session, 1);
  const data = Uint8Array.from({ length: 100_000 }, (_, index) => (index * 31) & 0xff);
  const sent = stream.write(data).then(() => stream.close());
  const back = await stream.readAll(data.length);
  await sent;
  await session.close();
  return {
    verified: session.peer.verified,
    status: response.status,
    payload: new TextDecoder().decode(response.payload),
    echoed: back.length,
    equal: back.every((byte, index) => byte === data[index]),
  };
}

async function echo(stream: {
  read(): Promise<Uint8Array>;
  write(data: Uint8Array): Promise<void>;
  close(): Promise<void>;
}): Promise<void> {
  try {
    for (;;) await stream.write(await stream.read());
  } catch {
    await stream.close();
  }
}
