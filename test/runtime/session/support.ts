/** A client and a device in the simulator, connected directly, with the real code from session to core. */
import { Router } from '../../../protocol/coap/index.ts';
import { RemoteError } from '../../../protocol/errors/index.ts';
import type { Host, HostConfig } from '../../../runtime/host/index.ts';
import type { Session } from '../../../runtime/session/index.ts';
import type { LinkOptions, SimulatedHost, Simulation } from '../../../testing/index.ts';
import { DEVICE_NAME, DEVICE_PORT, STATION_PORT } from '../../support/fixture/identifiers.ts';
import { SessionFixture } from '../../support/fixture/sessions.ts';

export { DEVICE_NAME, DEVICE_PORT, STATION_PORT } from '../../support/fixture/identifiers.ts';

export interface PairOptions {
  seed?: number;
  link?: LinkOptions;
  device?: Partial<HostConfig>;
  client?: Partial<HostConfig>;
  /** As both hosts' operators state it. */
  linkMtu?: number;
}

export interface Pair {
  simulation: Simulation;
  deviceEnvironment: SimulatedHost;
  clientEnvironment: SimulatedHost;
  device: Host;
  client: Host;
  /** sessions the device accepted, newest last */
  accepted: Session[];
  /** error lines of both hosts' logs */
  errors: string[];
}

/** Both hosts, not yet connected. */
export async function hosts({
  seed = 1,
  link = {},
  device: deviceConfig = {},
  client: clientConfig = {},
  linkMtu,
}: PairOptions = {}): Promise<Pair> {
  const fixture = new SessionFixture({ seed, link });
  const stated = linkMtu === undefined ? {} : { linkMtu };
  const device = await fixture.device({
    machine: 'device',
    addresses: ['10.0.0.1/24'],
    binds: [{ port: DEVICE_PORT, local: true }],
    responder: () => [DEVICE_NAME, 'device'],
    ...stated,
    ...deviceConfig,
  });
  const client = await fixture.client({ machine: 'client', addresses: ['10.0.0.2/24'], ...stated, ...clientConfig });
  return {
    simulation: fixture.sim,
    deviceEnvironment: device.environment,
    clientEnvironment: client.environment,
    device: device.host,
    client: client.host,
    accepted: device.incoming,
    errors: fixture.errors,
  };
}

export type ConnectedPair = Pair & { session: Session };

/** Both hosts, and a session between them. */
export async function pair(options: PairOptions = {}): Promise<ConnectedPair> {
  const both = await hosts(options);
  const session = await both.simulation.settle(both.client.dials.connect(deviceTarget(both)));
  return { ...both, session };
}

export function deviceTarget(both: Pair) {
  return { address: '10.0.0.1', port: DEVICE_PORT, name: DEVICE_NAME, pin: both.device.fingerprint, timeout: 300_000 };
}

/** The session at the device, once its handshake is complete there too. */
export async function acceptedSession(both: Pair): Promise<Session> {
  await both.simulation.run(() => both.accepted.length > 0);
  return both.accepted.at(-1)!;
}

export const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);
export const utf8 = (string: string): Uint8Array => new TextEncoder().encode(string);

/** Bytes that depend on their position, so that any displacement shows. */
export function pattern(length: number, offset = 0): Uint8Array {
  const data = new Uint8Array(length);
  for (let i = 0; i < length; i++) {
    const at = i + offset;
    data[i] = (at ^ (at >>> 8) ^ (at >>> 16) ^ (at * 7)) & 0xff;
  }
  return data;
}

/** GET /hello, POST /echo (any size), GET /never (no answer), GET /slow (after 3 s), GET /fail (throws). */
export function testRouter(environment: SimulatedHost): Router<Session> {
  return new Router<Session>()
    .on('GET', '/hello', () => ({ status: 205, contentFormat: 0, payload: utf8('hello') }))
    .on('POST', '/echo', ({ payload, contentFormat }) => ({
      status: 204,
      payload,
      ...(contentFormat === undefined ? {} : { contentFormat }),
    }))
    .on('GET', '/never', () => new Promise(() => {}))
    .on('GET', '/slow', () => new Promise((resolve) => environment.clock.schedule(3000, () => resolve({ status: 205 }))))
    .on('GET', '/refused', () => {
      throw new RemoteError('FORBIDDEN', 'not for you');
    })
    .on('GET', '/fail', () => {
      throw new Error('a bug of the application');
    });
}

/** A raw base station, and its address. */
export async function openStation(simulation: Simulation, name: string, address: string, config: Partial<HostConfig> = {}) {
  const station = await new SessionFixture({ sim: simulation }).station({ machine: name, addresses: [`${address}/24`], ...config });
  const { environment, host, identity } = station;
  return { environment, host, identity, address: { host: name, port: STATION_PORT, fingerprint: host.fingerprint } };
}

/** The same, which answers the requests of {@link testRouter}. */
export async function openServingStation(...given: Parameters<typeof openStation>) {
  const opened = await openStation(...given);
  const router = testRouter(opened.environment);
  opened.host.onSession = (session) => {
    session.router = router;
  };
  return opened;
}
