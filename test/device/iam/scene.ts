/** A device under access control, attached to a base station, and clients that come through it or straight, in virtual time. */
import { type Connection, type ConnectionOptions, SvcClient } from '../../../client/node.ts';
import { createIamSecrets, Device, defaultConfiguration, Iam, type IamOptions } from '../../../device/index.ts';
import { type CborValue, decode, encode } from '../../../protocol/cbor/index.ts';
import { loadExchange } from '../../../protocol/password/index.ts';
import { type DeviceUnderTest, ids, Scene } from '../../client/scene.ts';
import { withCheapScrypt } from '../../support/cheap-scrypt.ts';
import { stateOf } from './model.ts';

const HOST = 'thermostat';
/** Device and clients are in one network; the base station is far from it. */
export const address = (number: number): string => `192.168.7.${number}/24`;

export class IamScene {
  readonly scene: Scene;
  readonly iam: Iam;
  readonly under: DeviceUnderTest;
  #clients = 0;

  /** Not yet started, nor under access control. */
  static async make(options: Partial<IamOptions> = {}, registered = true): Promise<IamScene> {
    // At the first login it would take real time, which virtual time does not wait for.
    await loadExchange();
    const scene = await Scene.make();
    const environment = withCheapScrypt(scene.world.sim.host(HOST, { addresses: [address(1)] }));
    const privateKey = new Device({ environment }).createPrivateKey();
    const secrets = createIamSecrets(privateKey, environment.crypto);
    const iam = new Iam({ configuration: defaultConfiguration(), state: stateOf(), secrets, ...options });
    const under = await scene.device({ environment, privateKey, registered });
    return new IamScene(scene, iam, under);
  }

  /** Started and attached. */
  static async attached(options: Partial<IamOptions> = {}): Promise<IamScene> {
    const made = await IamScene.make(options);
    await made.attach();
    return made;
  }

  private constructor(scene: Scene, iam: Iam, under: DeviceUnderTest) {
    this.scene = scene;
    this.iam = iam;
    this.under = under;
  }

  /** Puts the device under access control, starts it and waits until it is attached. */
  async attach(): Promise<void> {
    this.device.setIam(this.iam);
    await this.scene.start(this.under);
    await this.scene.until(this.under, 'ATTACHED');
  }

  get device(): Device {
    return this.under.device;
  }

  /** A client's private key, as PEM. */
  key(): string {
    return SvcClient.create({ environment: this.scene.world.sim.host(`key${++this.#clients}`) }).createPrivateKey();
  }

  /** Through the base station. */
  async relayed(options: ConnectionOptions = {}): Promise<Connection> {
    const connection = this.scene.connection({ Local: false, ...options }, this.#client());
    await this.#connect(connection);
    return connection;
  }

  /** Straight to the device, over its local port. */
  async direct({ PrivateKey, ...options }: ConnectionOptions = {}): Promise<Connection> {
    const client = this.#client();
    const connection = client.createConnection();
    connection.updateOptions({
      PrivateKey: PrivateKey ?? client.createPrivateKey(),
      ProductId: ids.productId,
      DeviceId: ids.deviceId,
      ...options,
    });
    connection.enableDirectCandidates();
    connection.addDirectCandidate(HOST, this.device.localPort);
    connection.endOfDirectCandidates();
    await this.#connect(connection);
    return connection;
  }

  /** Status of a request with a CBOR body, or none. */
  async request(connection: Connection, method: string, path: string, body?: CborValue): Promise<number> {
    const coap = connection.createCoap(method, path);
    if (body !== undefined) coap.setRequestPayload(60, encode(body));
    await this.scene.settle(coap.execute());
    return coap.getResponseStatusCode();
  }

  /** Name of the user the connection acts as; null for nobody. */
  async me(connection: Connection): Promise<string | null> {
    const coap = connection.createCoap('GET', '/iam/me');
    await this.scene.settle(coap.execute());
    if (coap.getResponseStatusCode() === 404) return null;
    return (decode(coap.getResponsePayload()) as { Username: string }).Username;
  }

  /** OK, or the code of the error a login ends with. */
  login(connection: Connection, username: string, password: string): Promise<string> {
    return this.scene.code(connection.passwordAuthenticate(username, password));
  }

  /** Virtual milliseconds pass. */
  async pass(milliseconds: number): Promise<void> {
    await this.scene.world.sim.run(milliseconds);
  }

  settle<T>(promise: Promise<T>): Promise<T> {
    return this.scene.settle(promise);
  }

  close(): Promise<void> {
    return this.scene.close();
  }

  #client(): SvcClient {
    const number = ++this.#clients;
    return this.scene.client(withCheapScrypt(this.scene.world.sim.host(`app${number}`, { addresses: [address(number + 1)] })));
  }

  async #connect(connection: Connection): Promise<void> {
    await this.settle(connection.connect());
    // Until the device has proved the path.
    await this.pass(100);
  }
}
