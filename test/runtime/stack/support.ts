/** A device and a client on a simulated network, with everything real in between: sessions, driver, protocol, core. */
import { Router } from '../../../protocol/coap/index.ts';
import { type ConnectTarget, Host, type HostConfig } from '../../../runtime/host/index.ts';
import type { Session, Stream } from '../../../runtime/session/index.ts';
import { Random, type SimulatedHost, type Simulation, type SimulationOptions } from '../../../testing/index.ts';
import { DEVICE_NAME, DEVICE_PORT, ids } from '../../support/fixture/identifiers.ts';
import { SessionFixture } from '../../support/fixture/sessions.ts';

export { DEVICE_NAME as NAME, DEVICE_PORT as PORT } from '../../support/fixture/identifiers.ts';

/** Ports of the device's streams. */
export const StreamPort = { ECHO: 1, SINK: 2, NEVER_READ: 3 } as const;

export interface Bench {
  simulation: Simulation;
  random: Random;
  deviceHost: SimulatedHost;
  clientHost: SimulatedHost;
  device: Host;
  client: Host;
  /** Full hex fingerprint of the device. */
  pin: string;
  /** Requests that the device has served, by path. */
  served: Map<string, number>;
  /** Bytes that arrived at `StreamPort.SINK`. */
  sunk: { bytes: number };
  connect(target?: Partial<ConnectTarget>): Promise<Session>;
}

export interface BenchOptions extends SimulationOptions {
  device?: Partial<HostConfig>;
  client?: Partial<HostConfig>;
  /** The link configuration of both hosts. */
  linkMtu?: number;
}

export async function bench({ device = {}, client = {}, linkMtu, ...simulated }: BenchOptions = {}): Promise<Bench> {
  const fixture = new SessionFixture({ log: () => {}, ...simulated });
  const stated = linkMtu === undefined ? {} : { linkMtu };
  const counts = new Map<string, number>();
  const sunk = { bytes: 0 };
  const deviceAt = await fixture.device({ machine: 'device', ...stated, ...served(counts, sunk), ...device });
  const clientAt = await fixture.client({ machine: 'client', ...stated, ...client });
  return {
    simulation: fixture.sim,
    random: new Random(`data ${fixture.sim.seed}`),
    deviceHost: deviceAt.environment,
    clientHost: clientAt.environment,
    device: deviceAt.host,
    client: clientAt.host,
    pin: deviceAt.host.fingerprint,
    served: counts,
    sunk,
    connect: (target = {}) => clientAt.host.dials.connect({ ...deviceAt.target, ...target }),
  };
}

/** The device: CoAP `/echo`, streams that echo, swallow or are never read. */
export async function startDevice(host: SimulatedHost, config: Partial<HostConfig> & Pick<HostConfig, 'identity'>): Promise<Host> {
  const info = { ProductId: ids.productId, DeviceId: ids.deviceId };
  const device = { binds: [{ port: DEVICE_PORT }], responder: () => [DEVICE_NAME], info, acceptStreams: true };
  return Host.open(host, { ...device, ...served(new Map(), { bytes: 0 }), ...config });
}

/** @param counts and `sunk` are as in {@link Bench} */
function served(counts: Map<string, number>, sunk: { bytes: number }): Required<Pick<HostConfig, 'router' | 'onSession'>> {
  const router = new Router<Session>();
  router.on('POST', '/echo', (request) => {
    counts.set('/echo', (counts.get('/echo') ?? 0) + 1);
    return { status: 204, contentFormat: 42, payload: request.payload };
  });
  const onSession = (session: Session): void => {
    session.onStream = (incoming) => {
      if (incoming.port === StreamPort.ECHO) void echo(incoming.accept());
      else if (incoming.port === StreamPort.SINK) void swallow(incoming.accept(), sunk);
      else if (incoming.port === StreamPort.NEVER_READ) incoming.accept();
      else incoming.refuse();
    };
  };
  return { router, onSession };
}

/** Writes and reads at once; returns the bytes read. */
export async function roundTrip(stream: Stream, data: Uint8Array): Promise<Uint8Array> {
  const writing = stream.write(data).then(() => stream.close());
  const back = await stream.readAll(data.length);
  await writing;
  return back;
}

export function equal(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i]);
}

async function echo(stream: Stream): Promise<void> {
  try {
    for (;;) await stream.write(await stream.read());
  } catch (error) {
    if ((error as { code?: string }).code === 'END_OF_FILE') await stream.close().catch(() => {});
  }
}

async function swallow(stream: Stream, sunk: { bytes: number }): Promise<void> {
  try {
    for (;;) sunk.bytes += (await stream.read()).length;
  } catch {
    await stream.close().catch(() => {});
  }
}
