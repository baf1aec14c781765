/**
 * Runs in the browser: the client SDK and a device on two hosts of a simulation over a lossy link. It has a handshake
 * with a pinned fingerprint, a CoAP request, an observation with its end, and an echoed byte stream.
 *
 * The device SDK needs Node, so the device is a simulated host with a CoAP router, made with `svc-connect/testing`.
 */
import { SvcClient } from 'svc-connect/client';
import { fingerprint, Router } from 'svc-connect/protocol';
import { Host, type Session, type SimulatedHost, Simulation } from 'svc-connect/testing';

const PORT = 5592;
const LENGTH = 100_000;

type Client = ReturnType<typeof SvcClient.create>;
type Connection = ReturnType<Client['createConnection']>;

/** What the client saw, as JSON. */
export async function scenario(): Promise<Record<string, unknown>> {
  const simulation = new Simulation({ seed: 7, link: { delay: 5, loss: 0.02 } });
  const device = await Device.open(simulation.host('device', { addresses: ['10.0.0.1/24'] }));
  const client = SvcClient.create({ environment: simulation.host('client', { addresses: ['10.0.0.2/24'] }) });
  return simulation.settle(run(client, device));
}

async function run(client: Client, device: Device): Promise<Record<string, unknown>> {
  const connection = client.createConnection();
  connection.updateOptions({ PrivateKey: client.createPrivateKey(), DeviceFingerprint: device.fingerprint });
  connection.enableDirectCandidates();
  connection.addDirectCandidate('device', PORT);
  connection.endOfDirectCandidates();
  await connection.connect();
  const seen = {
    type: connection.getType(),
    verified: connection.verified,
    hello: await hello(connection),
    observed: await observed(connection, device),
    echoed: await echoed(connection),
  };
  await connection.close();
  await client.stop();
  return { ...seen, isConnected: connection.isConnected };
}

async function hello(connection: Connection): Promise<string> {
  const answer = await connection.get('/hello');
  return `${answer.status} ${answer.text}`;
}

/** Three states and the end of the observation. Each is published once the one before has arrived. */
async function observed(connection: Connection, device: Device): Promise<string[]> {
  const seen: string[] = [];
  for await (const answer of connection.observe('/state')) {
    seen.push(`${answer.status} ${answer.text}`);
    device.publish(seen.length < 3 ? 205 : 404, `state ${seen.length}`);
  }
  return seen;
}

/** Number of bytes that the device echoed unchanged. */
async function echoed(connection: Connection): Promise<number> {
  const stream = connection.openStream(1);
  await stream.opened;
  const data = Uint8Array.from({ length: LENGTH }, (_, index) => (index * 31) & 0xff);
  const sent = stream.write(data).then(() => stream.close());
  const back = await stream.readAll(LENGTH);
  await sent;
  return back.filter((byte, index) => byte === data[index]).length;
}

/** The device: `/hello`, the observable `/state`, and streams that echo. */
class Device {
  readonly fingerprint: string;
  #observer: { session: Session; exchange: number } | null = null;

  static async open(environment: SimulatedHost): Promise<Device> {
    const identity = environment.crypto.generateKey();
    const device = new Device(fingerprint(identity.publicKey, environment.crypto));
    await Host.open(environment, {
      identity,
      binds: [{ port: PORT }],
      responder: () => ['device'],
      acceptStreams: true,
      router: device.#router(),
      onSession: (session) => {
        session.onStream = (incoming) => void echo(incoming.accept());
      },
    });
    return device;
  }

  private constructor(fingerprint: string) {
    this.fingerprint = fingerprint;
  }

  /** Notifies the observer; an error status ends the observation. */
  publish(status: number, state: string): void {
    this.#observer?.session.notify(this.#observer.exchange, { status, payload: bytes(state), observe: status < 300 });
  }

  #router(): Router<Session> {
    return new Router<Session>()
      .on('GET', '/hello', () => ({ status: 205, payload: bytes('hello') }))
      .on('GET', '/state', ({ context: session, exchange }) => {
        this.#observer = { session, exchange };
        return { status: 205, payload: bytes('state 0'), observe: true };
      });
  }
}

async function echo(stream: ReturnType<Parameters<NonNullable<Session['onStream']>>[0]['accept']>): Promise<void> {
  try {
    for (;;) await stream.write(await stream.read());
  } catch {
    await stream.close();
  }
}

function bytes(value: string): Uint8Array {
  return new TextEncoder().encode(value);
}
