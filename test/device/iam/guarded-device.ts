/**
 * A device under access control, attached to a base station, and clients that connect through it or directly, in
 * virtual time.
 */
import { type Connection, type ConnectionOptions, SvcClient } from '../../../client/node.ts';
import { createIamSecrets, Device, defaultConfiguration, Iam, type IamOptions } from '../../../device/index.ts';
import { type CborValue, encode } from '../../../protocol/cbor/index.ts';
import { loadExchange } from '../../../protocol/password/index.ts';
import { withCheapScrypt } from '../../support/cheap-scrypt.ts';
import type { DeviceUnderTest } from '../../support/fixture/devices-and-clients.ts';
import { ids } from '../../support/fixture/identifiers.ts';
import { ProductFixture } from '../../support/fixture/products.ts';
import type { StationUnderTest } from '../../support/fixture/station.ts';
import { stateOf } from './model.ts';

const HOST = 'thermostat';
/** Device and clients share one network; the base station is far from it. */
export const address = (number: number): string => `192.168.7.${number}/24`;

export class GuardedDevice {
  readonly fixture: ProductFixture;
  readonly station: StationUnderTest;
  readonly iam: Iam;
  readonly under: DeviceUnderTest;
  #clients = 0;

  /** Not yet started, nor under access control. */
  static async make(options: Partial<IamOptions> = {}, registered = true): Promise<GuardedDevice> {
    // At the first login it would take real time, for which virtual time does not wait.
    await loadExchange();
    const fixture = new ProductFixture();
    const station = await fixture.station();
    const environment = withCheapScrypt(fixture.host(HOST, { machine: HOST, addresses: [address(1)] }));
    const privateKey = new Device({ environment }).createPrivateKey();
    const secrets = createIamSecrets(privateKey, environment.crypto);
    const iam = new Iam({ configuration: defaultConfiguration(), state: stateOf(), secrets, ...options });
    const under = await fixture.device({ environment, privateKey, registered });
    return new GuardedDevice(fixture, station, iam, under);
  }

  /** Started and attached. */
  static async attached(options: Partial<IamOptions> = {}): Promise<GuardedDevice> {
    const made = await GuardedDevice.make(options);
    await made.attach();
    return made;
  }

  private constructor(fixture: ProductFixture, station: StationUnderTest, iam: Iam, under: DeviceUnderTest) {
    this.fixture = fixture;
    this.station = station;
    this.iam = iam;
    this.under = under;
  }

  /** Puts the device under access control, starts it and waits until it is attached. */
  async attach(): Promise<void> {
    this.device.setIam(this.iam);
    await this.fixture.start(this.under);
    await this.fixture.until(this.under, 'ATTACHED');
  }

  get device(): Device {
    return this.under.device;
  }

  /** A client's private key, as PEM. */
  key(): string {
    return SvcClient.create({ environment: this.fixture.host('key') }).createPrivateKey();
  }

  /** A client at an address of its own; `direct` makes each of its connections with a separate key. */
  client(): SvcClient {
    const number = ++this.#clients;
    return this.fixture.client(withCheapScrypt(this.fixture.host('app', { addresses: [address(number + 1)] })));
  }

  /** Through the base station. */
  async relayed(options: ConnectionOptions = {}): Promise<Connection> {
    const connection = this.fixture.connection({ Local: false, ...options }, this.client());
    await this.#connect(connection);
    return connection;
  }

  /** Directly to the device's local port. */
  async direct(options: ConnectionOptions = {}, client: SvcClient = this.client()): Promise<Connection> {
    const to = { ProductId: ids.productId, DeviceId: ids.deviceId, ...options };
    const connection = this.fixture.directConnection(HOST, this.device.localPort, to, client);
    await this.#connect(connection);
    return connection;
  }

  /** Returns the status of a request with a CBOR body, or none. */
  async request(connection: Connection, method: string, path: string, body?: CborValue): Promise<number> {
    const content = body === undefined ? {} : { body: encode(body), format: 60 };
    return (await this.fixture.settle(connection.request(method, path, content))).status;
  }

  /** Returns the name of the user that the connection acts as; null for no user. */
  async me(connection: Connection): Promise<string | null> {
    const answer = await this.fixture.settle(connection.get('/iam/me'));
    return answer.status === 404 ? null : (answer.cbor() as { Username: string }).Username;
  }

  /** Returns OK, or the code of the error that a login ends with. */
  login(connection: Connection, username: string, password: string): Promise<string> {
    return this.fixture.code(connection.passwordAuthenticate(username, password));
  }

  /** Advances virtual time by milliseconds. */
  async pass(milliseconds: number): Promise<void> {
    await this.fixture.sim.run(milliseconds);
  }

  settle<T>(promise: Promise<T>): Promise<T> {
    return this.fixture.settle(promise);
  }

  async #connect(connection: Connection): Promise<void> {
    await this.settle(connection.connect());
    // Until the device has validated the path.
    await this.pass(100);
  }
}
