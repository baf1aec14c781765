/**
 * The local side of a UDP tunnel: a socket, by default on 127.0.0.1, and a flow for each address that sends to it
 * (`udp-flow.ts`).
 *
 * - It leads to a session; without one, datagrams of programs are dropped.
 * - Flows are ordered by their last datagram. At the limit, the flow that was silent longest ends: programs such as
 *   resolvers use another port for each query.
 * - A flow that failed (refused, service unreachable) stays for `REST` and ignores its program's datagrams, so that a
 *   program cannot cause a request to the device for each datagram.
 */

import type { BoundSocket, Environment } from '../../platform/environment.ts';
import type { SvcError } from '../../protocol/errors/index.ts';
import type { Path } from '../../protocol/path.ts';
import { type DatagramCounts, noDatagrams, type Session } from '../../runtime/session/index.ts';
import type { TunnelListener } from '../platform.ts';
import { LocalFlow, type Target } from './udp-flow.ts';

/** RFC 4787 REQ-5: ms without a datagram after which a flow ends. */
export const IDLE_TIMEOUT = 120_000;
/** Our constant: half of a device's limit for one client, so that ending and beginning flows fit together. */
export const MAX_FLOWS = 128;
/** Our constant, ms. */
const REST = 1_000;
/** Our constants: datagrams that wait to leave for local programs, and their bytes. */
export const MAX_LEAVING = 256;
export const MAX_LEAVING_BYTES = 1024 * 1024;

/** Limits of a tunnel's flows. */
export interface UdpTunnelOptions {
  /**
   * Time without datagrams after which a flow ends: at least 1,000 ms; default 120,000 (RFC 4787 REQ-5). The device has
   * its own timeout.
   */
  readonly idleTimeout?: number;
  /**
   * Local addresses that can use the tunnel at a time; default 128. One more replaces the one that was silent longest.
   */
  readonly maxFlows?: number;
}

/** Datagrams: `sent` to the device, `received` from it. */
export interface UdpTunnelStats extends Readonly<DatagramCounts> {
  /** Open flows. */
  readonly flows: number;
  readonly flowsOpened: number;
  /** Refused by the device, or ended because the service cannot be reached. */
  readonly flowsFailed: number;
  /** Ended early to make room. */
  readonly flowsReplaced: number;
}

/** The parts of a listener. */
export interface UdpTunnelParts {
  readonly host: Pick<Environment, 'clock' | 'network'>;
  /** Numeric address to listen on; default 127.0.0.1. */
  readonly address?: string;
  /** The device refused or reset a flow. */
  readonly onRefused?: (error: SvcError) => void;
}

export class UdpTunnelListener implements TunnelListener {
  readonly #parts: UdpTunnelParts;
  readonly #idleTimeout: number;
  readonly #maxFlows: number;
  readonly #counts = noDatagrams();
  /** Flows by path, which is one object per address as long as it is held here; the last one used is last. */
  readonly #flows = new Map<Path, LocalFlow>();
  #socket: BoundSocket | null = null;
  #target: Target | null = null;
  #leaving = 0;
  #leavingBytes = 0;
  #opened = 0;
  #failed = 0;
  #replaced = 0;

  /**
   * Listens without a target.
   * @param port 0 takes a free one.
   * @throws LocalError PORT_IN_USE, PRIVILEGED_PORT, INVALID_ARGUMENT (the address)
   */
  static async listen(parts: UdpTunnelParts, port: number, options: UdpTunnelOptions): Promise<UdpTunnelListener> {
    const listener = new UdpTunnelListener(parts, options);
    listener.#socket = await parts.host.network.bind({
      port,
      host: parts.address ?? '127.0.0.1',
      receive: (datagram, path) => listener.#receive(datagram, path),
    });
    return listener;
  }

  private constructor(parts: UdpTunnelParts, { idleTimeout = IDLE_TIMEOUT, maxFlows = MAX_FLOWS }: UdpTunnelOptions) {
    this.#parts = parts;
    this.#idleTimeout = idleTimeout;
    this.#maxFlows = maxFlows;
  }

  get port(): number {
    return this.#socket?.port ?? 0;
  }

  stats(): UdpTunnelStats {
    const flows = [...this.#flows.values()].filter(({ failed }) => !failed).length;
    return { flows, flowsOpened: this.#opened, flowsFailed: this.#failed, flowsReplaced: this.#replaced, ...this.#counts };
  }

  /** Sets the target, until the session ends. Earlier flows end. */
  attach(session: Session, streamPort: number): void {
    this.#endFlows();
    session.onDatagram = (datagram) => session.datagrams.receive(datagram);
    this.#target = { session, streamPort };
  }

  async close(): Promise<void> {
    this.#socket?.close();
    this.#endFlows();
  }

  #endFlows(): void {
    for (const flow of this.#flows.values()) flow.abort();
    this.#flows.clear();
  }

  /** Handles a datagram of a local program. */
  #receive(datagram: Uint8Array, path: Path): void {
    const flow = this.#flows.get(path) ?? this.#begin(path);
    if (flow === null || flow.failed) {
      this.#counts.dropped++;
      return;
    }
    this.#used(path, flow);
    flow.send(datagram);
  }

  #begin(path: Path): LocalFlow | null {
    if (this.#target === null || !this.#target.session.isOpen) return null;
    if (this.#flows.size >= this.#maxFlows) this.#replaceOldest();
    const flow = new LocalFlow({
      ...this.#target,
      clock: this.#parts.host.clock,
      idleTimeout: this.#idleTimeout,
      counts: this.#counts,
      receive: (payload) => {
        this.#used(path, flow);
        this.#toProgram(payload, path);
      },
      onEnd: (failure) => this.#ended(path, flow, failure),
    });
    this.#opened++;
    this.#flows.set(path, flow);
    flow.start();
    return flow;
  }

  #replaceOldest(): void {
    for (const [path, flow] of this.#flows) {
      this.#flows.delete(path);
      if (!flow.failed) this.#replaced++;
      flow.end();
      return;
    }
  }

  /** Moves the flow to the end of the order. */
  #used(path: Path, flow: LocalFlow): void {
    if (!this.#flows.delete(path)) return;
    this.#flows.set(path, flow);
  }

  #ended(path: Path, flow: LocalFlow, failure: SvcError | null): void {
    if (this.#flows.get(path) !== flow) return;
    if (failure === null) {
      this.#flows.delete(path);
      return;
    }
    this.#failed++;
    if (this.#target?.session.isOpen === true) this.#parts.onRefused?.(failure);
    this.#parts.host.clock.schedule(REST, () => this.#flows.get(path) === flow && this.#flows.delete(path));
  }

  #toProgram(payload: Uint8Array, path: Path): void {
    const { length } = payload;
    if (this.#leaving >= MAX_LEAVING || this.#leavingBytes + length > MAX_LEAVING_BYTES) {
      this.#counts.dropped++;
      return;
    }
    this.#leaving++;
    this.#leavingBytes += length;
    this.#socket?.send(payload, 0, length, path, () => {
      this.#leaving--;
      this.#leavingBytes -= length;
    });
  }
}
