/**
 * One flow of a UDP tunnel on the device: its own socket, connected to the service, and the datagrams of the stream
 * that represents it (PROTOCOL.md §12).
 *
 * It ends with the stream; after the idle timeout without a datagram (the stream is then ended, and aborted if the
 * client does not end it, too); and when the network reports that the service is unreachable (the stream is reset).
 */
import { StreamCode, SvcError } from '../../protocol/errors/index.ts';
import type { Cancel, Clock, ConnectedSocket, Environment } from '../../transport/environment.ts';
import type { DatagramCounts, DatagramFlow, SessionStream } from '../../transport/session/index.ts';
import type { DeviceConnection } from '../connections.ts';
import type { TunnelConnection } from './tunnels.ts';

/** Our constant, ms: time for a client to end the stream of a flow that has ended here. */
const END_TIMEOUT = 30_000;

/** The parts of a flow. */
export interface UdpFlowOptions {
  readonly environment: Pick<Environment, 'clock' | 'network'>;
  readonly client: DeviceConnection;
  /** The service's numeric address. */
  readonly address: string;
  readonly port: number;
  /** ms */
  readonly idleTimeout: number;
  /** Updated by the flow. */
  readonly counts: DatagramCounts;
}

export class UdpFlow implements TunnelConnection {
  readonly #options: UdpFlowOptions;
  readonly #clock: Clock;
  #socket: ConnectedSocket | null = null;
  #flow: DatagramFlow | null = null;
  #stream: SessionStream | null = null;
  #failure: Error | null = null;
  #ending: Promise<void> | null = null;
  #lastUsed: number;
  #cancelTimer: Cancel;

  /** Opens the socket. @throws LocalError UNKNOWN when the system refuses one */
  static async open(options: UdpFlowOptions): Promise<UdpFlow> {
    const flow = new UdpFlow(options);
    try {
      flow.#socket = await options.environment.network.connect({
        address: options.address,
        port: options.port,
        receive: (datagram) => flow.#fromService(datagram),
        failed: (error) => flow.#fail(error),
      });
    } catch (error) {
      flow.abort();
      throw error;
    }
    return flow;
  }

  private constructor(options: UdpFlowOptions) {
    this.#options = options;
    this.#clock = options.environment.clock;
    this.#lastUsed = this.#clock.now();
    this.#cancelTimer = this.#clock.schedule(options.idleTimeout, () => this.#lookWhetherIdle());
  }

  async join(stream: SessionStream): Promise<void> {
    if (this.#failure !== null) throw this.#failure;
    this.#stream = stream;
    this.#flow = this.#options.client.openFlow(stream, (payload) => this.#fromClient(payload), this.#options.counts);
    // A client that resets the stream needs no answer.
    await readToEnd(stream).catch(() => {});
    this.#stop();
    await this.#end(stream);
    if (this.#failure !== null) throw this.#failure;
  }

  abort(): void {
    this.#stop();
    this.#stream?.abort();
  }

  #fromClient(payload: Uint8Array): void {
    this.#lastUsed = this.#clock.now();
    if (this.#socket?.send(payload) !== true) this.#options.counts.dropped++;
  }

  #fromService(payload: Uint8Array): void {
    this.#lastUsed = this.#clock.now();
    this.#flow?.send(payload);
  }

  #fail(error: Error): void {
    this.#failure = error;
    this.#stop();
    this.#stream?.abort(StreamCode.SERVICE_FAILED);
  }

  #lookWhetherIdle(): void {
    const rest = this.#lastUsed + this.#options.idleTimeout - this.#clock.now();
    if (rest > 0) this.#cancelTimer = this.#clock.schedule(rest, () => this.#lookWhetherIdle());
    else this.#endIdle();
  }

  #endIdle(): void {
    this.#stop();
    if (this.#stream === null) return;
    void this.#end(this.#stream);
    this.#cancelTimer = this.#clock.schedule(END_TIMEOUT, () => this.abort());
  }

  /** Ends our direction of the stream. */
  #end(stream: SessionStream): Promise<void> {
    this.#ending ??= stream.close().catch(() => {});
    return this.#ending;
  }

  /** Stops carrying datagrams. */
  #stop(): void {
    this.#cancelTimer();
    this.#flow?.close();
    this.#flow = null;
    this.#socket?.close();
  }
}

/** Bytes on the stream of a flow have no meaning yet and are ignored. */
async function readToEnd(stream: SessionStream): Promise<void> {
  try {
    for (;;) await stream.readSome();
  } catch (error) {
    if (!(error instanceof SvcError && error.code === 'END_OF_FILE')) throw error;
  }
}
