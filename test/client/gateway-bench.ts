/** A gateway in virtual time with a CoAP tool on the same host; its device is behind a base station. */
import { type Connection, Gateway, type GatewayOptions, type SvcClient } from '../../client/node.ts';
import type { Device } from '../../device/index.ts';
import type { SimulatedHost } from '../../testing/index.ts';
import type { DeviceUnderTest } from '../support/fixture/devices-and-clients.ts';
import { ProductFixture } from '../support/fixture/products.ts';
import { Tool } from './gateway-tool.ts';

const LOOPBACK = '127.0.0.1';

/** Value of an Observe option: 0 registers, 1 cancels. */
export const observe = (value: number): { name: 'Observe'; value: Buffer } => ({
  name: 'Observe',
  value: Buffer.from(value === 0 ? [] : [value]),
});

export class GatewayBench {
  readonly fixture: ProductFixture;
  readonly under: DeviceUnderTest;
  readonly host: SimulatedHost;
  readonly client: SvcClient;
  gateway!: Gateway;
  tool!: Tool;
  /** What the gateways reported, one after the other. */
  states: string[] = [];

  static async start(): Promise<GatewayBench> {
    const fixture = new ProductFixture();
    await fixture.station({ connectsPerDevice: 1000, connectsPerAddress: 1000 });
    const bench = new GatewayBench(fixture, await fixture.attached());
    await bench.open();
    return bench;
  }

  private constructor(fixture: ProductFixture, under: DeviceUnderTest) {
    this.fixture = fixture;
    this.under = under;
    this.host = fixture.sim.host('desk');
    this.client = fixture.client();
  }

  get device(): Device {
    return this.under.device;
  }

  /** Opens a gateway and a tool in place of the present ones, which the caller has closed. */
  async open(options: Partial<GatewayOptions> = {}): Promise<void> {
    this.gateway = await Gateway.open({
      environment: this.host,
      connection: await this.fixture.settle(this.connect()),
      connect: () => this.connect(),
      onState: (state) => this.states.push(state),
      ...options,
    });
    this.tool = await Tool.open(this.fixture, this.host, LOOPBACK, this.gateway.port);
  }

  async close(): Promise<void> {
    this.tool.close();
    await this.fixture.settle(this.gateway.close());
  }

  async connect(): Promise<Connection> {
    const connection = this.fixture.connection(
      { DeviceFingerprint: this.device.deviceFingerprint, KeepAliveInterval: 1000, KeepAliveMaxRetries: 3 },
      this.client,
    );
    await connection.connect();
    return connection;
  }

  run(ms = 1000): Promise<boolean> {
    return this.fixture.sim.run(ms);
  }

  /** Code and payload of each message that the tool received. */
  texts(): string[] {
    return this.tool.received.map(({ code, payload }) => `${code} ${payload}`);
  }
}
