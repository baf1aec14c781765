/**
 * UDP tunnel services of a device: the services (`tunnels.ts`), and counts of their datagrams. What was lost is
 * reported once a minute, for all services together.
 */

import type { Environment } from '../../platform/environment.ts';
import { whole } from '../../protocol/arguments.ts';
import { type DatagramCounts, type DatagramLoss, DatagramLossReport, noDatagrams } from '../../runtime/session/index.ts';
import type { DeviceConnection } from '../connections.ts';
import { checkLimit } from '../settings.ts';
import { type TunnelService, Tunnels, type TunnelsOptions } from './tunnels.ts';
import { UdpFlow } from './udp-flow.ts';

/** RFC 4787 REQ-5: ms without a datagram after which a flow ends. */
export const IDLE_TIMEOUT = 120_000;
/** Our constant: concurrent flows of one client's connection. */
export const FLOWS_PER_CLIENT = 256;

/** A UDP server that clients may reach through the device. */
export interface UdpTunnelService extends TunnelService {
  /** Time without datagrams after which a flow ends: at least 1,000 ms; default 120,000 (RFC 4787 REQ-5). */
  readonly idleTimeout?: number;
}

/** Counts of one service since it was added. */
export interface UdpTunnelServiceStats extends Readonly<DatagramCounts> {
  /** Open flows. */
  readonly flows: number;
}

export class UdpTunnels {
  readonly services: Tunnels<UdpTunnelService>;
  readonly #counts = new Map<string, DatagramCounts>();
  readonly #report: DatagramLossReport;
  /** Connections with flows, now or before. */
  readonly #clients = new Set<DeviceConnection>();
  /** Lost over connections that have ended, and by services that were removed. */
  readonly #past = { tooLong: 0, dropped: 0, incomplete: 0, lost: 0 };

  /** @param onLoss called at most once a minute, with what was lost since */
  constructor(
    environment: Environment,
    options: Omit<TunnelsOptions<UdpTunnelService>, 'kind' | 'connect' | 'lost' | 'extra'>,
    onLoss: (loss: DatagramLoss) => void,
  ) {
    this.#report = new DatagramLossReport(environment.clock, () => this.#total(), onLoss);
    this.services = new Tunnels({
      ...options,
      kind: 'UDP',
      extra: { idleTimeout: whole(1_000) },
      connect: ({ id, port, idleTimeout = IDLE_TIMEOUT }, addresses, client) => {
        this.#follow(client);
        return UdpFlow.open({ environment, client, addresses, port, idleTimeout, counts: this.#countsOf(id) });
      },
      lost: (id) => lostBy(this.#countsOf(id)),
    });
    this.services.limitPerClient = FLOWS_PER_CLIENT;
  }

  /** @throws as Tunnels.add */
  add(service: UdpTunnelService): void {
    this.services.add(service);
    this.#counts.set(service.id, noDatagrams());
  }

  /** Removes a service and resets its flows. @throws LocalError NOT_FOUND */
  remove(id: string): void {
    this.services.remove(id);
    addTo(this.#past, this.#countsOf(id));
    this.#counts.delete(id);
  }

  /** Limits the concurrent flows of one client's connection. */
  limitPerClient(flows: number): void {
    this.services.limitPerClient = checkLimit('flows', flows);
  }

  /** @throws LocalError NOT_FOUND */
  stats(id: string): UdpTunnelServiceStats {
    return { flows: this.services.open(id), ...this.#countsOf(id) };
  }

  close(): void {
    this.#report.stop();
    this.services.close();
  }

  #total(): DatagramLoss {
    const total = { ...this.#past };
    for (const counts of this.#counts.values()) addTo(total, counts);
    for (const client of this.#clients) total.lost += client.datagramsLost;
    return total;
  }

  #follow(client: DeviceConnection): void {
    this.#report.start();
    if (this.#clients.has(client)) return;
    this.#clients.add(client);
    void client.closed.then(() => {
      this.#clients.delete(client);
      this.#past.lost += client.datagramsLost;
    });
  }

  #countsOf(id: string): DatagramCounts {
    return this.#counts.get(id) ?? noDatagrams();
  }
}

function addTo(loss: { tooLong: number; dropped: number; incomplete: number }, counts: DatagramCounts): void {
  loss.tooLong += counts.tooLong;
  loss.dropped += counts.dropped;
  loss.incomplete += counts.incomplete;
}

function lostBy({ tooLong, dropped, incomplete }: DatagramCounts): number {
  return tooLong + dropped + incomplete;
}
