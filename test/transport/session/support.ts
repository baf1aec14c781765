/** A client and a device in the simulator, connected directly, with the real code from session to core. */
import { Router } from '../../../protocol/coap/index.ts';
import { RemoteError } from '../../../protocol/errors/index.ts';
import { fingerprint } from '../../../protocol/identity/index.ts';
import { Host, type HostConfig } from '../../../transport/host/index.ts';
import type { Session } from '../../../transport/session/index.ts';
import type { LinkOptions, SimulatedHost, Simulation } from '../../../transport/sim/index.ts';
import { nativeSimulation } from '../../support/simulation.ts';

export const DEVICE_PORT = 5592;
export const STATION_PORT = 4433;
export const DEVICE_NAME = 'device:pr-test.de-test';

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
export async function hosts(options: PairOptions = {}): Promise<Pair> {
  const errors: string[] = [];
  const simulation = nativeSimulation({
    seed: options.seed ?? 1,
    link: options.link ?? {},
    log: (host, level, message, fields) => {
      if (level === 'error') errors.push(`${host}: ${message} ${JSON.stringify(fields ?? {})}`);
    },
  });
  const stated = options.linkMtu === undefined ? {} : { linkMtu: options.linkMtu };
  const deviceEnvironment = simulation.host('device', { addresses: ['10.0.0.1/24'], ...stated });
  const clientEnvironment = simulation.host('client', { addresses: ['10.0.0.2/24'], ...stated });
  const accepted: Session[] = [];
  const deviceConfig = options.device ?? {};
  const device = await simulation.settle(
    Host.open(deviceEnvironment, {
      identity: deviceEnvironment.crypto.generateKey(),
      binds: [{ port: DEVICE_PORT, local: true }],
      responder: () => [DEVICE_NAME, 'device'],
      info: { ProductId: 'pr-test', DeviceId: 'de-test' },
      acceptStreams: true,
      ...deviceConfig,
      onSession: (session) => {
        accepted.push(session);
        deviceConfig.onSession?.(session);
      },
    }),
  );
  const client = await simulation.settle(
    Host.open(clientEnvironment, {
      identity: clientEnvironment.crypto.generateKey(),
      binds: [{ port: 0 }],
      ...options.client,
    }),
  );
  return { simulation, deviceEnvironment, clientEnvironment, device, client, accepted, errors };
}

export type ConnectedPair = Pair & { session: Session };

/** Both hosts, and a session between them. */
export async function pair(options: PairOptions = {}): Promise<ConnectedPair> {
  const both = await hosts(options);
  const session = await both.simulation.settle(both.client.connect(deviceTarget(both)));
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

/** The bytes of position, so that any displaced byte shows. */
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

/** An environment in which `Host.open` can be told apart: a base station. */
export async function openStation(simulation: Simulation, name: string, address: string, config: Partial<HostConfig> = {}) {
  const environment = simulation.host(name, { addresses: [`${address}/24`] });
  const identity = config.identity ?? environment.crypto.generateKey();
  const host = await simulation.settle(
    Host.open(environment, { identity, binds: [{ port: STATION_PORT }], responder: () => ['station'], ...config }),
  );
  return {
    environment,
    host,
    identity,
    address: { host: name, port: STATION_PORT, fingerprint: fingerprint(identity.publicKey, environment.crypto) },
  };
}
