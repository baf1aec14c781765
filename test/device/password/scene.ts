/** A device with password authentication, clients and somebody in the middle, in virtual time over direct paths. scrypt costs next to nothing. */
import { type Connection, SvcClient } from '../../../client/node.ts';
import { Device } from '../../../device/index.ts';
import type { PasswordSource } from '../../../device/password/source.ts';
import type { CoapResponse } from '../../../protocol/coap/index.ts';
import type { CryptoHost } from '../../../protocol/crypto-host.ts';
import { loadExchange, makeVerifier, type PasswordVerifier } from '../../../protocol/password/index.ts';
import type { Environment } from '../../../transport/environment.ts';
import { Host } from '../../../transport/host/index.ts';
import type { Session } from '../../../transport/session/index.ts';
import type { LinkOptions, Simulation } from '../../../transport/sim/index.ts';
import { withCheapScrypt } from '../../support/cheap-scrypt.ts';
import { nativeSimulation } from '../../support/simulation.ts';

export const ids = { productId: 'pr-1', deviceId: 'de-1' };

export class PasswordScene {
  readonly sim: Simulation;
  readonly device: Device;
  /** The device's. */
  readonly crypto: CryptoHost;
  /** Lines of every log. */
  readonly logged: string[] = [];
  readonly #ends: (() => Promise<unknown>)[] = [];
  readonly #addresses = new Map<string, string>();
  #parties = 0;

  static async make(link: LinkOptions = { delay: 5 }): Promise<PasswordScene> {
    // At the first login it would take real time, which virtual time does not wait for.
    await loadExchange();
    const scene = new PasswordScene(link);
    await scene.sim.settle(scene.device.start());
    return scene;
  }

  private constructor(link: LinkOptions) {
    const log = (host: string, level: string, message: string, fields?: object) =>
      void this.logged.push(`${host} ${level} ${message} ${JSON.stringify(fields)}`);
    this.sim = nativeSimulation({ seed: 1, link, log });
    const environment = this.environment('device');
    this.crypto = environment.crypto;
    this.device = new Device({ environment, ...ids, basestationAttach: false });
    this.device.setPrivateKey(this.device.createPrivateKey());
    this.#ends.push(() => this.device.close());
  }

  /** A machine of the simulation. */
  environment(name: string): Environment {
    const host = this.sim.host(name, { addresses: [`10.0.0.${this.#addresses.size + 1}/24`] });
    this.#addresses.set(name, host.addresses[0]!);
    return withCheapScrypt(host);
  }

  /** Users with verifiers, as a store of users keeps them; `paired` are pairs of user name and fingerprint. */
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

  /** A client's connection to a host by its name, not verified by any pin. Locally, or to the port that is not local. */
  async connected({ host = 'device', local = true }: { host?: string; local?: boolean } = {}): Promise<Connection> {
    const connection = this.connection(host, local ? this.device.localPort : this.device.p2pPort);
    await this.sim.settle(connection.connect());
    // Until the device has it, too.
    await this.sim.run(100);
    return connection;
  }

  connection(host: string, port: number): Connection {
    const client = SvcClient.create({ environment: this.environment(`client${++this.#parties}`) });
    this.#ends.push(() => client.stop());
    const connection = client.createConnection();
    connection.updateOptions({ PrivateKey: client.createPrivateKey(), ProductId: ids.productId, DeviceId: ids.deviceId });
    connection.enableDirectCandidates();
    connection.addDirectCandidate(host, port);
    connection.endOfDirectCandidates();
    return connection;
  }

  /** A session straight to the device, for requests no client makes. */
  async raw({ local = true }: { local?: boolean } = {}): Promise<Session> {
    const environment = this.environment(`raw${++this.#parties}`);
    const host = await this.sim.settle(Host.open(environment, { identity: environment.crypto.generateKey(), binds: [{ port: 0 }] }));
    this.#ends.push(() => host.close());
    return this.sim.settle(this.dial(host, local));
  }

  async dial(host: Host, local = true): Promise<Session> {
    const port = local ? this.device.localPort : this.device.p2pPort;
    const path = host.sockets[0]!.path(this.#addresses.get('device')!, port);
    return host.connect({ path, name: `device:${ids.productId}.${ids.deviceId}` });
  }

  /** The code of the error a login ends with. */
  login(connection: Connection, username: string, password: string): Promise<string> {
    const outcome = connection.passwordAuthenticate(username, password).then(
      () => 'OK',
      (error: { code: string }) => error.code,
    );
    return this.sim.settle(outcome);
  }

  post(session: Session, path: string, payload: Uint8Array, contentFormat = 60): Promise<CoapResponse> {
    return this.sim.settle(session.request({ method: 'POST', path, contentFormat, payload }));
  }

  ends(end: () => Promise<unknown>): void {
    this.#ends.push(end);
  }

  async close(): Promise<void> {
    for (const end of this.#ends.reverse()) await this.sim.settle(end().catch(() => {}));
  }
}
