/**
 * A device on loopback with a resource `/state` that can be read, set and observed, and a client of it: CoAP tools are
 * tested against it through the gateway.
 */
import { type Connection, SvcClient } from '../../client/node.ts';
import { type CoapResource, Device } from '../../device/index.ts';

const ids = { productId: 'pr-1', deviceId: 'de-1' };

/** A body of 100,000 bytes. */
export const LARGE = Buffer.from(Array.from({ length: 100_000 }, (_, i) => (i * 31 + (i >> 8)) & 255));

export class StateDevice {
  readonly device = new Device({ ...ids, localPort: 0, p2pPort: 0, basestationAttach: false });
  readonly resource: CoapResource;
  readonly #client = SvcClient.create();
  /** The present state. */
  stored: Buffer = Buffer.from('one');

  static async start(): Promise<StateDevice> {
    const started = new StateDevice();
    await started.device.start();
    return started;
  }

  private constructor() {
    const { device } = this;
    device.setPrivateKey(device.createPrivateKey());
    const get = () => ({ status: 205, contentFormat: 42, payload: this.stored });
    this.resource = device.addCoapResource('GET', '/state', get, { observable: true });
    device.addCoapResource('PUT', '/state', ({ payload }) => {
      this.stored = Buffer.from(payload);
      this.resource.notify();
      return { status: 204 };
    });
  }

  /** A new client's connection each time, directly to the device. */
  async connect(signal?: AbortSignal): Promise<Connection> {
    const connection = this.#client.createConnection();
    connection.updateOptions({
      PrivateKey: this.#client.createPrivateKey(),
      ProductId: ids.productId,
      DeviceId: ids.deviceId,
      DeviceFingerprint: this.device.deviceFingerprint,
      Local: false,
      Remote: false,
    });
    connection.enableDirectCandidates();
    connection.addDirectCandidate('127.0.0.1', this.device.localPort);
    connection.endOfDirectCandidates();
    await connection.connect(signal === undefined ? {} : { signal });
    return connection;
  }

  async close(): Promise<void> {
    await this.#client.stop();
    await this.device.close();
  }
}
