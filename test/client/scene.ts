/** A base station, devices and clients in virtual time: the products themselves, on hosts of one simulation. */
import { type Connection, type ConnectionOptions, SvcClient } from '../../client/node.ts';
import { Device, type DeviceEvent, type DeviceOptions } from '../../device/index.ts';
import type { SvcError } from '../../protocol/errors/index.ts';
import type { StationSettings } from '../../server/index.ts';
import type { Environment } from '../../transport/environment.ts';
import { ids, PORT, World } from '../server/station/world.ts';

export { ids } from '../server/station/world.ts';

export const SERVER_URL = `https://station:${PORT}`;
export const SCT = 'token-of-tests';

/** A device with what happened to it. */
export interface DeviceUnderTest {
  readonly device: Device;
  readonly events: DeviceEvent[];
  readonly reasons: (SvcError | null)[];
  /** Name of its host. */
  readonly host: string;
}

export class Scene {
  readonly world: World;
  #parties = 0;
  readonly #clients: SvcClient[] = [];
  readonly #devices: Device[] = [];

  static async make(settings: Partial<StationSettings> = {}, seed = 1): Promise<Scene> {
    return new Scene(await World.make(settings, seed));
  }

  private constructor(world: World) {
    this.world = world;
  }

  /** A device that is registered, with a token, not yet started. */
  async device(options: DeviceOptions & { registered?: boolean } = {}): Promise<DeviceUnderTest> {
    const { registered = true, ...given } = options;
    const host = `device${++this.#parties}`;
    const device = new Device({
      environment: this.world.sim.host(host),
      ...ids,
      serverUrl: SERVER_URL,
      serverFingerprint: this.world.station.fingerprint,
      ...given,
    });
    if (given.privateKey === undefined) device.setPrivateKey(device.createPrivateKey());
    device.addServerConnectToken(SCT);
    if (registered)
      await this.world.register({ productId: device.productId ?? '', deviceId: device.deviceId ?? '' }, device.deviceFingerprint);
    const under: DeviceUnderTest = { device, events: [], reasons: [], host };
    device.onDeviceEvent((event, reason) => {
      under.events.push(event);
      under.reasons.push(reason);
    });
    this.#devices.push(device);
    return under;
  }

  /** The same, started and attached. */
  async attached(options: DeviceOptions = {}): Promise<DeviceUnderTest> {
    const under = await this.device(options);
    await this.start(under);
    await this.until(under, 'ATTACHED');
    return under;
  }

  start({ device }: DeviceUnderTest): Promise<void> {
    return this.world.sim.settle(device.start());
  }

  /** Runs until the event was seen `times` times. */
  async until({ events }: DeviceUnderTest, event: DeviceEvent, times = 1, limit?: number): Promise<void> {
    await this.world.sim.run(() => events.filter((each) => each === event).length >= times, limit);
  }

  client(environment: Environment = this.world.sim.host(`client${++this.#parties}`)): SvcClient {
    const client = SvcClient.create({ environment });
    this.#clients.push(client);
    return client;
  }

  /** A connection to the device of `ids` through the base station, not yet connected. */
  connection(options: ConnectionOptions = {}, client: SvcClient = this.client()): Connection {
    const connection = client.createConnection();
    connection.updateOptions({
      PrivateKey: client.createPrivateKey(),
      ProductId: ids.productId,
      DeviceId: ids.deviceId,
      ServerUrl: SERVER_URL,
      ServerFingerprint: this.world.station.fingerprint,
      ServerConnectToken: SCT,
      ...options,
    });
    return connection;
  }

  /** The same, connected. */
  async connected(options: ConnectionOptions = {}): Promise<Connection> {
    const connection = this.connection(options);
    await this.settle(connection.connect());
    return connection;
  }

  settle<T>(promise: Promise<T>): Promise<T> {
    return this.world.sim.settle(promise);
  }

  /** The code of the error a promise ends with. */
  async code(promise: Promise<unknown>): Promise<string> {
    return this.settle(
      promise.then(
        () => 'OK',
        (error: { code: string }) => error.code,
      ),
    );
  }

  /** One request: status and text. */
  async coap(
    connection: Connection,
    method: string,
    path: string,
    payload?: string | Uint8Array,
  ): Promise<{ status: number; text: string }> {
    const coap = connection.createCoap(method, path);
    if (payload !== undefined) coap.setRequestPayload(0, typeof payload === 'string' ? new TextEncoder().encode(payload) : payload);
    await this.settle(coap.execute());
    const status = coap.getResponseStatusCode();
    try {
      return { status, text: new TextDecoder().decode(coap.getResponsePayload()) };
    } catch {
      return { status, text: '' };
    }
  }

  async close(): Promise<void> {
    await this.settle(Promise.all(this.#clients.map((client) => client.stop())));
    await this.settle(Promise.all(this.#devices.map((device) => device.close().catch(() => {}))));
    await this.world.close();
  }
}
