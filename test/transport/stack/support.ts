/** A device and a client on a simulated network, with everything real in between: sessions, driver, protocol, core. */
import { Router } from '../../../protocol/coap/index.ts';
import { fingerprint } from '../../../protocol/identity/index.ts';
import { type ConnectTarget, Host, type HostConfig } from '../../../transport/host/index.ts';
import type { Session, SessionStream } from '../../../transport/session/index.ts';
import { Random, type SimulatedHost, type Simulation, type SimulationOptions } from '../../../transport/sim/index.ts';
import { nativeSimulation } from '../../support/simulation.ts';

export const NAME = 'device:pr-1.de-1';
export const PORT = 5592;

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
  /** Requests the device has served, by path. */
  served: Map<string, number>;
  /** Bytes that arrived at `StreamPort.SINK`. */
  sunk: { bytes: number };
  connect(target?: Partial<ConnectTarget>): Promise<Session>;
}

export interface BenchOptions extends SimulationOptions {
  device?: Partial<HostConfig>;
  client?: Partial<HostConfig>;
  /** What both hosts are told about their links. */
  linkMtu?: number;
}

export async function bench({ device = {}, client = {}, linkMtu, ...simulated }: BenchOptions = {}): Promise<Bench> {
  const simulation = nativeSimulation(simulated);
  const stated = linkMtu === undefined ? {} : { linkMtu };
  const [deviceHost, clientHost] = [simulation.host('device', stated), simulation.host('client', stated)];
  const served = new Map<string, number>();
  const sunk = { bytes: 0 };
  const identity = deviceHost.crypto.generateKey();
  const openedDevice = await startDevice(deviceHost, { identity, ...device }, served, sunk);
  const openedClient = await Host.open(clientHost, { identity: clientHost.crypto.generateKey(), binds: [{ port: 0 }], ...client });
  const pin = fingerprint(identity.publicKey, clientHost.crypto);
  const address = deviceHost.addresses[0]!;
  return {
    simulation,
    random: new Random(`data ${simulation.seed}`),
    deviceHost,
    clientHost,
    device: openedDevice,
    client: openedClient,
    pin,
    served,
    sunk,
    connect: (target = {}) => openedClient.connect({ address, port: PORT, name: NAME, pin, ...target }),
  };
}

/** The device: CoAP `/echo` and `/count/{name}`, streams that echo, swallow or are never read. */
export async function startDevice(
  host: SimulatedHost,
  config: Partial<HostConfig> & Pick<HostConfig, 'identity'>,
  served = new Map<string, number>(),
  sunk = { bytes: 0 },
): Promise<Host> {
  const router = new Router<Session>();
  router.on('POST', '/echo', (request) => {
    served.set('/echo', (served.get('/echo') ?? 0) + 1);
    return { status: 204, contentFormat: 42, payload: request.payload };
  });
  return Host.open(host, {
    binds: [{ port: PORT }],
    responder: () => [NAME],
    info: { ProductId: 'pr-1', DeviceId: 'de-1' },
    acceptStreams: true,
    router,
    onSession: (session) => {
      session.onStream = (incoming) => {
        if (incoming.port === StreamPort.ECHO) void echo(incoming.accept());
        else if (incoming.port === StreamPort.SINK) void swallow(incoming.accept(), sunk);
        else if (incoming.port === StreamPort.NEVER_READ) incoming.accept();
        else incoming.refuse();
      };
    },
    ...config,
  });
}

/** Writes and reads at once; gives what came back. */
export async function roundTrip(stream: SessionStream, data: Uint8Array): Promise<Uint8Array> {
  const writing = stream.write(data).then(() => stream.close());
  const back = await stream.readAll(data.length);
  await writing;
  return back;
}

export function equal(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i]);
}

async function echo(stream: SessionStream): Promise<void> {
  try {
    for (;;) await stream.write(await stream.readSome());
  } catch (error) {
    if ((error as { code?: string }).code === 'END_OF_FILE') await stream.close().catch(() => {});
  }
}

async function swallow(stream: SessionStream, sunk: { bytes: number }): Promise<void> {
  try {
    for (;;) sunk.bytes += (await stream.readSome()).length;
  } catch {
    await stream.close().catch(() => {});
  }
}
