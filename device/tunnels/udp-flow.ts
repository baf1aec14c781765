/**
 * One flow of a UDP tunnel on the device: its own socket, connected to the service, and the datagrams of the stream
 * that represents it (PROTOCOL.md §12).
 *
 * It ends with the stream; after the idle timeout without a datagram (the stream is then ended, and aborted if the
 * client does not end it, too); and when the network reports that the service is unreachable (the stream is reset). A
 * service of which nothing has come is tried at its next address first, with the latest datagram again.
 */

import type { Cancel, Clock, ConnectedSocket, Environment } from '../../platform/environment.ts';
import { StreamCode, SvcError } from '../../protocol/errors/index.ts';
import type { DatagramCounts, DatagramFlow, Stream } from '../../runtime/session/index.ts';
import type { DeviceConnection } from '../connections.ts';
import type { PinnedAddresses } from './pinned-address.ts';
import type { TunnelConnection } from './tunnels.ts';

/** Our constant, ms: time for a client to end the stream of a flow that has ended here. */
const END_TIMEOUT = 30_000;

/** The parts of a flow. */
export interface UdpFlowOptions {
  readonly environment: Pick<Environment, 'clock' | 'network'>;
  readonly client: DeviceConnection;
  readonly addresses: PinnedAddresses;
  readonly port: number;
  /** ms */
  readonly idleTimeout: number;
  /** Updated by the flow. */
  readonly counts: DatagramCounts;
}

/** Our constant, bytes: the longest datagram that is kept for another address of the service. */
const LONGEST_KEPT = 1_500;

export class UdpFlow implements TunnelConnection {
  readonly #options: UdpFlowOptions;
  readonly #clock: Clock;
  #socket: ConnectedSocket | null = null;
  /** Addresses of the service that were not tried yet; none once it has answered. */
  #others: string[] = [];
  /** The latest datagram of the client, for the next address. */
  #latest: Uint8Array | null = null;
  #isStopped = false;
  #flow: DatagramFlow | null = null;
  #stream: Stream | null = null;
  #failure: Error | null = null;
  #ending: Promise<void> | null = null;
  #lastUsed: number;
  #cancelTimer: Cancel;

  /** Opens the socket. @throws LocalError UNKNOWN when the system refuses one */
  static async open(options: UdpFlowOptions): Promise<UdpFlow> {
    const flow = new UdpFlow(options);
    try {
      flow.#others = [...(await options.addresses.all())];
      await flow.#connect();
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

  /** Opens a socket towards the next address for which the system has one. @throws the error of the last */
  async #connect(): Promise<void> {
    const { environment, port } = this.#options;
    const address = this.#others.shift()!;
    try {
      const socket = await environment.network.connect({
        address,
        port,
        receive: (datagram) => this.#fromService(datagram, address),
        failed: (error) => this.#fail(error),
      });
      if (this.#isStopped) socket.close();
      else this.#socket = socket;
    } catch (error) {
      if (this.#others.length === 0) throw error;
      await this.#connect();
    }
  }

  async join(stream: Stream): Promise<void> {
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
    if (this.#others.length > 0 && payload.length <= LONGEST_KEPT) this.#latest = payload.slice();
    if (this.#socket?.send(payload) !== true) this.#options.counts.dropped++;
  }

  #fromService(payload: Uint8Array, address: string): void {
    this.#lastUsed = this.#clock.now();
    if (this.#others.length > 0) this.#others = [];
    this.#latest = null;
    this.#options.addresses.worked(address);
    this.#flow?.send(payload);
  }

  #fail(error: Error): void {
    if (this.#others.length > 0) {
      this.#socket = null;
      void this.#connect().then(
        () => this.#latest !== null && this.#socket?.send(this.#latest),
        (last: Error) => this.#fail(last),
      );
      return;
    }
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
  #end(stream: Stream): Promise<void> {
    this.#ending ??= stream.close().catch(() => {});
    return this.#ending;
  }

  /** Stops carrying datagrams. */
  #stop(): void {
    this.#isStopped = true;
    this.#others = [];
    this.#cancelTimer();
    this.#flow?.close();
    this.#flow = null;
    this.#socket?.close();
  }
}

/** Bytes on the stream of a flow have no meaning yet and are ignored. */
async function readToEnd(stream: Stream): Promise<void> {
  try {
    for (;;) await stream.read();
  } catch (error) {
    if (!(error instanceof SvcError && error.code === 'END_OF_FILE')) throw error;
  }
}
