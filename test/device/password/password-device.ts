/**
 * A device with password authentication, clients and an attacker in the middle, in virtual time over direct paths of
 * one network. scrypt costs next to nothing.
 */
import type { Connection } from '../../../client/node.ts';
import type { Device } from '../../../device/index.ts';
import type { PasswordSource } from '../../../device/password/requests.ts';
import type { Environment } from '../../../platform/environment.ts';
import type { CoapResponse } from '../../../protocol/coap/index.ts';
import type { CryptoProvider } from '../../../protocol/crypto-provider.ts';
import { loadExchange, makeVerifier, type PasswordVerifier } from '../../../protocol/password/index.ts';
import type { Host } from '../../../runtime/host/index.ts';
import type { Session } from '../../../runtime/session/index.ts';
import type { LinkOptions, SimulatedHost, Simulation } from '../../../testing/index.ts';
import { withCheapScrypt } from '../../support/cheap-scrypt.ts';
import { DEVICE_NAME, ids } from '../../support/fixture/identifiers.ts';
import { ProductFixture } from '../../support/fixture/products.ts';

const HOST = 'device';

export class PasswordDevice {
  readonly fixture: ProductFixture;
  /** Lines of every log. */
  readonly logged: string[] = [];
  /** The device's. */
  readonly crypto: CryptoProvider;
  device!: Device;
  readonly #environment: Environment;
  #machines = 0;
  #clients = 0;

  /** Started. */
  static async make(link: LinkOptions = { delay: 5 }): Promise<PasswordDevice> {
    // At the first login it would take real time, for which virtual time does not wait.
    await loadExchange();
    const made = new PasswordDevice(link);
    const under = await made.fixture.device({ environment: made.#environment });
    made.device = under.device;
    await made.fixture.start(under);
    return made;
  }

  private constructor(link: LinkOptions) {
    const log = (host: string, level: string, message: string, fields?: object) =>
      void this.logged.push(`${host} ${level} ${message} ${JSON.stringify(fields)}`);
    this.fixture = new ProductFixture({ link, log });
    this.#environment = this.environment(HOST);
    this.crypto = this.#environment.crypto;
  }

  get sim(): Simulation {
    return this.fixture.sim;
  }

  /** A machine in the device's network. */
  machine(name: string): SimulatedHost {
    return this.fixture.host(name, { machine: name, addresses: [this.address()] });
  }

  /** The next address in the device's network. */
  address(): string {
    return `10.0.0.${++this.#machines}/24`;
  }

  /** A machine of a product in the device's network. */
  environment(name: string): Environment {
    return withCheapScrypt(this.machine(name));
  }

  /** Users with verifiers, as a store of users keeps them; `paired` lists pairs of user name and fingerprint. */
  async users(passwords: Readonly<Record<string, string>>, paired: readonly (readonly [string, string])[] = []): Promise<PasswordSource> {
    const { crypto } = this.environment('users');
    const verifiers = new Map<string, PasswordVerifier>();
    for (const [name, password] of Object.entries(passwords)) verifiers.set(name, await makeVerifier(crypto, password));
    return {
      lookup: (username) => {
        const verifier = verifiers.get(username);
        return verifier === undefined ? null : { ...verifier, value: verifier.value.slice() };
      },
      kdfOf: () => 1,
      isPaired: (username, { clientFingerprint }) =>
        paired.some(([name, fingerprint]) => name === username && fingerprint === clientFingerprint),
    };
  }

  /** A client's connection to a machine by its name, not verified by a pin; to the local port, or to the other one. */
  async connected({ host = HOST, local = true }: { host?: string; local?: boolean } = {}): Promise<Connection> {
    const connection = this.connection(host, this.#port(local));
    await this.settle(connection.connect());
    // Until the device has it, too.
    await this.sim.run(100);
    return connection;
  }

  connection(host: string, port: number): Connection {
    const client = this.fixture.client(this.environment(`client${++this.#clients}`));
    return this.fixture.directConnection(host, port, { ProductId: ids.productId, DeviceId: ids.deviceId }, client);
  }

  /** A session directly to the device, for requests that no client makes. */
  async raw({ local = true }: { local?: boolean } = {}): Promise<Session> {
    const { host } = await this.fixture.raw.client({ addresses: [this.address()] });
    return this.settle(this.dial(host, local));
  }

  async dial(host: Host, local = true): Promise<Session> {
    const path = host.sockets.bound[0]!.path(this.sim.addressesOf(HOST)[0]!, this.#port(local));
    return host.dials.connect({ path, name: DEVICE_NAME });
  }

  /** Returns the code of the error that a login ends with, or OK. */
  login(connection: Connection, username: string, password: string): Promise<string> {
    return this.fixture.code(connection.passwordAuthenticate(username, password));
  }

  post(session: Session, path: string, payload: Uint8Array, contentFormat = 60): Promise<CoapResponse> {
    return this.settle(session.request({ method: 'POST', path, contentFormat, payload }));
  }

  settle<T>(promise: Promise<T>): Promise<T> {
    return this.sim.settle(promise);
  }

  #port(local: boolean): number {
    return local ? this.device.localPort : this.device.p2pPort;
  }
}
