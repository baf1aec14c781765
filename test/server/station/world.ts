/** A base station in virtual time, with raw sessions in the place of devices and clients. */
import { type CoapResponse, Router } from '../../../protocol/coap/index.ts';
import {
  type AttachRequest,
  ClientPath,
  CONTENT_FORMAT_CBOR,
  type ConnectRequest,
  DevicePath,
  decodeConnectAnswer,
  decodeErrorBody,
  decodeP2pConnectRequest,
  encodeAttachRequest,
  encodeConnectRequest,
  encodeP2pConnectAnswer,
  StationPath,
} from '../../../protocol/control/index.ts';
import type { PrivateKey } from '../../../protocol/crypto-host.ts';
import { Basestation, type BasestationOptions, type StationSettings } from '../../../server/index.ts';
import type { Directory } from '../../../server/station/directory.ts';
import type { Presence } from '../../../server/station/presence.ts';
import { Sealer } from '../../../server/storage/sealing.ts';
import { hashSecret } from '../../../server/storage/secrets.ts';
import { openSqliteStore } from '../../../server/storage/sqlite.ts';
import type { App, Store } from '../../../server/storage/store.ts';
import { Host } from '../../../transport/host/index.ts';
import type { Session } from '../../../transport/session/index.ts';
import type { SimulatedHost, Simulation } from '../../../transport/sim/index.ts';
import { nativeSimulation } from '../../support/simulation.ts';

export const PORT = 4433;
export const ids = { productId: 'pr-1', deviceId: 'de-1' };
const created = '2026-01-02T03:04:05.678Z';

export class World {
  readonly sim: Simulation;
  readonly store: Store;
  readonly settings: Partial<StationSettings>;
  readonly sealer = new Sealer(new Uint8Array(32));
  /** What the station does with the outside; counts from the next start. */
  outbound: NonNullable<BasestationOptions['outbound']> = {};
  /** What says where devices are attached; counts from the next start. */
  directoryOf: (here: Presence) => Directory = (here) => here;
  identity!: PrivateKey;
  resetSecret!: Uint8Array;
  station!: Basestation;
  #machine!: SimulatedHost;
  #parties = 0;

  /** A station with organizations or-a (pr-1, pr-2, key sk-a) and or-b (pr-b, key sk-b). */
  static async make(settings: Partial<StationSettings> = {}, seed = 1): Promise<World> {
    // The store answers in turns of its own: hop lets them pass before time moves on.
    const sim = nativeSimulation({ seed, link: { delay: 10 }, hop: () => new Promise((resolve) => setImmediate(resolve)) });
    const store = await openSqliteStore(':memory:');
    for (const organizationId of ['or-a', 'or-b']) await store.addOrganization({ organizationId, name: null, created });
    for (const [productId, organizationId] of [
      ['pr-1', 'or-a'],
      ['pr-2', 'or-a'],
      ['pr-b', 'or-b'],
    ] as const)
      await store.addProduct({ productId, organizationId, name: null, created });
    const app: App = {
      appId: 'ap-a',
      organizationId: 'or-a',
      name: null,
      authType: 'NONE',
      keyHash: hashSecret('sk-a'),
      productIds: null,
      created,
    };
    await store.addApp(app);
    await store.addApp({ ...app, appId: 'ap-b', organizationId: 'or-b', keyHash: hashSecret('sk-b') });
    await store.addApp({ ...app, appId: 'ap-jwt', keyHash: hashSecret('sk-jwt'), authType: 'JWT' });
    const world = new World(sim, store, { connections: 64, ...settings });
    await world.startStation();
    return world;
  }

  private constructor(sim: Simulation, store: Store, settings: Partial<StationSettings>) {
    this.sim = sim;
    this.store = store;
    this.settings = settings;
  }

  /** Also after `stopStation`, with the same key and reset secret. */
  async startStation(): Promise<void> {
    const environment = this.sim.host('station');
    this.#machine = environment;
    this.identity ??= environment.crypto.generateKey();
    this.resetSecret ??= environment.crypto.randomBytes(32);
    const { identity, resetSecret, store, settings, sealer, outbound, directoryOf } = this;
    this.station = await this.sim.settle(
      Basestation.open(environment, { identity, resetSecret, store, settings, sealer, port: PORT, outbound }, directoryOf),
    );
  }

  /** As SIGKILL would. */
  stopStation(): void {
    this.#machine.stop();
  }

  /** A machine with a key of its own. */
  async party(options: { identity?: PrivateKey; responder?: string; info?: Record<string, unknown> } = {}): Promise<Party> {
    const environment = this.sim.host(`party${++this.#parties}`);
    const identity = options.identity ?? environment.crypto.generateKey();
    const { responder, info = {} } = options;
    const responding = responder === undefined ? {} : { responder: () => [responder], info };
    const host = await this.sim.settle(Host.open(environment, { identity, binds: [{ port: 0 }], acceptStreams: true, ...responding }));
    return new Party(this, host, identity);
  }

  /** A party that is registered under `ids`, attached, and accepts relayed handshakes. */
  async device(registered = ids): Promise<Party> {
    const { productId, deviceId } = registered;
    const device = await this.party({ responder: `device:${productId}.${deviceId}`, info: { ProductId: productId, DeviceId: deviceId } });
    await this.store.addDevice({ ...registered, name: null, fingerprint: device.host.fingerprint, created });
    await device.open(device.acceptsRelayed());
    expectStatus(await device.attach(registered), 201);
    return device;
  }

  register(deviceIds: { productId: string; deviceId: string }, fingerprint: string | null): Promise<void> {
    return this.store.addDevice({ ...deviceIds, name: null, fingerprint, created });
  }

  async close(): Promise<void> {
    await this.sim.settle(this.station.close());
    await this.store.close();
  }
}

export class Party {
  readonly world: World;
  readonly host: Host;
  readonly identity: PrivateKey;
  /** To the station. */
  channel!: Session;
  /** Relayed sessions that came in. */
  readonly incoming: Session[] = [];

  constructor(world: World, host: Host, identity: PrivateKey) {
    this.world = world;
    this.host = host;
    this.identity = identity;
    host.onSession = (session) => this.incoming.push(session);
  }

  /** Opens a channel to the station. */
  async open(router?: Router<Session>): Promise<Session> {
    const target = { name: 'station', address: stationAddress(this.world), port: PORT, pin: this.world.station.fingerprint };
    this.channel = await this.world.sim.settle(this.host.connect(router ? { ...target, router } : target));
    return this.channel;
  }

  acceptsRelayed(): Router<Session> {
    return new Router<Session>().on('POST', StationPath.P2P_CONNECT, ({ payload, context }) => {
      const { route, routeResetToken, initiate } = decodeP2pConnectRequest(payload);
      const path = this.host.routePath(context, route, routeResetToken);
      const respond = initiate === undefined ? undefined : this.host.acceptRelayed(initiate, path);
      return { status: 201, contentFormat: CONTENT_FORMAT_CBOR, payload: encodeP2pConnectAnswer(respond === undefined ? {} : { respond }) };
    });
  }

  request(method: 'GET' | 'POST' | 'PUT' | 'DELETE', path: string, payload?: Uint8Array): Promise<CoapResponse> {
    const body = payload === undefined ? {} : { payload, contentFormat: CONTENT_FORMAT_CBOR };
    return this.world.sim.settle(this.channel.request({ method, path, ...body }));
  }

  attach(request: Partial<AttachRequest> = {}): Promise<CoapResponse> {
    const full = { svcVersion: '0.1.0', appName: null, appVersion: null, redirected: false, ...ids, ...request };
    return this.request('POST', DevicePath.ATTACH, encodeAttachRequest(full));
  }

  connect(request: Partial<ConnectRequest> = {}): Promise<CoapResponse> {
    return this.world.sim.settle(this.connecting(request));
  }

  /** The same, sent and not waited for. */
  connecting(request: Partial<ConnectRequest> = {}): Promise<CoapResponse> {
    const payload = encodeConnectRequest({ ...ids, serverKey: 'sk-a', ...request });
    return this.channel.request({ method: 'POST', path: ClientPath.CONNECT, contentFormat: CONTENT_FORMAT_CBOR, payload });
  }

  /** The whole way: handshake with the device of `ids` through the station, then a session on the route. */
  async reach(): Promise<Session> {
    const prepared = this.host.prepare({ name: `device:${ids.productId}.${ids.deviceId}` });
    const answer = decodeConnectAnswer((await this.connect({ initiate: prepared.initiate })).payload);
    if (answer.kind !== 'connected' || answer.respond === undefined) throw new Error(`not connected: ${answer.kind}`);
    const path = this.host.routePath(this.channel, answer.route, answer.routeResetToken);
    return this.world.sim.settle(prepared.establish(answer.respond, path));
  }
}

export function stationAddress(world: World): string {
  const address = world.sim.addressesOf('station').find((each) => !each.includes(':'));
  if (address === undefined) throw new Error('the station has no address');
  return address;
}

/** The code in an error body. */
export function errorCode(response: CoapResponse): number {
  if (response.contentFormat !== CONTENT_FORMAT_CBOR) throw new Error(`no error body: ${describeResponse(response)}`);
  return decodeErrorBody(response.payload).code;
}

export function expectStatus(response: CoapResponse, status: number): void {
  if (response.status !== status) throw new Error(`expected ${status}: ${describeResponse(response)}`);
}

function describeResponse({ status, payload }: CoapResponse): string {
  return `${status} ${new TextDecoder().decode(payload)}`;
}
