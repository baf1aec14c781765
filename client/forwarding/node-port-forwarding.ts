/**
 * Local ports that lead to services of a device (compare RFC 4254 §7): they stay open while the connection is lost and
 * reopened.
 *
 * 1. Requests each service over the connection and opens its port.
 * 2. When the connection is lost, `DeviceLink` makes another one, the services are requested again, and the ports lead
 *    there.
 * 3. It ends permanently when the device has another key, refuses a service or no longer has it, or when the base
 *    station refuses the client.
 *
 * A TCP connection does not survive the connection that carries it; new ones wait for the next (`node-tcp-port.ts`).
 * Datagrams are dropped meanwhile. The gateway does the same for CoAP endpoints.
 */

import { anEnvironment, type Environment } from '../../platform/environment.ts';
import { callback, checkOptions, flag, type Kind, nonEmptyText, oneOf, whole, withMethods } from '../../protocol/arguments.ts';
import { asSvcError, LocalError, SvcError } from '../../protocol/errors/index.ts';
import type { TunnelServiceRecord } from '../../protocol/records/index.ts';
import { type DatagramLoss, DatagramLossReport, type Session } from '../../runtime/session/index.ts';
import type { Connection } from '../connection.ts';
import { DeviceLink } from '../device-link.ts';
import { type FoundService, SERVICE_ID, type TunnelKind, tunnelKinds } from '../tunnels/ask-service.ts';
import { UdpTunnelListener, type UdpTunnelParts } from '../tunnels/udp-listener.ts';
import { TcpPort } from './node-tcp-port.ts';

/** Our constant: services of one forwarding. */
export const MAX_SERVICES = 32;

/** A service and its local port. */
export interface ForwardedService {
  readonly kind: TunnelKind;
  /** Id of the service on the device. */
  readonly id: string;
  /** 0, the default, takes a free port. */
  readonly localPort?: number;
}

/** The local port of a service could not be opened: PORT_IN_USE, PRIVILEGED_PORT or INVALID_ARGUMENT. */
export class LocalPortError extends SvcError {
  override name = 'LocalPortError';
  readonly service: ForwardedService;

  constructor(service: ForwardedService, { code, message }: SvcError) {
    super(code, message);
    this.service = service;
  }
}

/** A service whose local port is open. */
export interface ForwardedPort {
  readonly kind: TunnelKind;
  readonly port: number;
  /** The device's description of the service. */
  readonly service: TunnelServiceRecord;
}

export type ForwardingEvent =
  /** A connection is open again. */
  | { readonly kind: 'connected'; readonly connection: Connection }
  /** The connection was lost, or could not be made; it will be tried again. */
  | { readonly kind: 'lost'; readonly error: SvcError | null }
  /** No path of the connection works; open connections and requests wait. */
  | { readonly kind: 'resting'; readonly error: SvcError | null }
  | { readonly kind: 'resumed' }
  /** Bytes that local programs have not read leave little memory: further connections are slow until they are read. */
  | { readonly kind: 'cramped' }
  | { readonly kind: 'relieved' }
  /** A local connection or flow was refused: by the device, or with NOT_CONNECTED after its wait timed out. */
  | { readonly kind: 'refused'; readonly service: ForwardedService; readonly error: SvcError }
  /** Datagrams of UDP services were lost; at most once a minute, with what was lost since. */
  | { readonly kind: 'datagrams-lost'; readonly loss: DatagramLoss }
  /** The forwarding has ended permanently. */
  | { readonly kind: 'ended'; readonly error: SvcError };

export interface PortForwardingOptions {
  /** The environment to run in; connections come from `connect`. */
  readonly environment: Environment;
  /** An open connection. The forwarding closes it. */
  readonly connection: Connection;
  /** Opens a further connection to the same device. */
  readonly connect: (signal: AbortSignal) => Promise<Connection>;
  readonly services: readonly ForwardedService[];
  /** Numeric address to listen on; default 127.0.0.1. */
  readonly address?: string;
  /** The next connect may have another token, so that a rejected token does not end the forwarding. Default false. */
  readonly renewsToken?: boolean;
  readonly onEvent?: (event: ForwardingEvent) => void;
}

const KINDS: Record<keyof PortForwardingOptions, Kind> = {
  environment: anEnvironment,
  connection: withMethods('findService'),
  connect: callback,
  services: [Array.isArray, 'an array of services'],
  address: nonEmptyText,
  renewsToken: flag,
  onEvent: callback,
};
const SERVICE_KINDS: Record<keyof ForwardedService, Kind> = { kind: oneOf(tunnelKinds), id: SERVICE_ID, localPort: whole(0, 0xffff) };

interface LocalPort {
  readonly port: number;
  attach(session: Session, streamPort: number): void;
  /** The connection was resting, and continues. */
  resume?(): void;
  close(): Promise<void>;
}

/** Open local ports. */
export class PortForwarding {
  readonly #options: PortForwardingOptions;
  readonly #link: DeviceLink;
  readonly #ports: LocalPort[] = [];
  /** The services as the newest connection found them, in the given order. */
  #found: readonly FoundService[] = [];
  readonly #udpPorts: UdpTunnelListener[] = [];
  readonly #lossReport: DatagramLossReport;
  /** The session that the ports lead to, and what was lost over earlier ones. */
  #session: Session | null = null;
  #lostBefore = 0;

  /**
   * Requests the services and opens the ports. On an error only the connection stays open.
   * @throws NOT_FOUND (no such service); FORBIDDEN; LocalPortError; INVALID_ARGUMENT (too many services, a wrong type);
   *   STOPPED, NOT_CONNECTED when the connection is lost meanwhile
   */
  static async open(options: PortForwardingOptions): Promise<PortForwarding> {
    checkOptions('a port forwarding', options, KINDS, ['environment', 'connection', 'connect', 'services']);
    for (const service of options.services) checkOptions('a forwarded service', service, SERVICE_KINDS, ['kind', 'id']);
    const forwarding = new PortForwarding(options);
    await forwarding.#open();
    return forwarding;
  }

  private constructor(options: PortForwardingOptions) {
    this.#options = options;
    this.#lossReport = new DatagramLossReport(
      options.environment.clock,
      () => this.#totalLoss(),
      (loss) => this.#report({ kind: 'datagrams-lost', loss }),
    );
    this.#link = new DeviceLink({
      environment: options.environment,
      connect: (signal) => this.#connect(signal),
      // Codes of the device's answer to a request for a service; a failed channel has other codes.
      isFinal: ({ code }) => code === 'NOT_FOUND' || code === 'FORBIDDEN',
      renewsToken: options.renewsToken ?? false,
      events: {
        connected: (connection) => this.#connected(connection),
        lost: (error) => this.#report({ kind: 'lost', error }),
        ended: (error) => this.#ended(error),
      },
    });
  }

  /** The ports, in the order of the services. */
  get ports(): readonly ForwardedPort[] {
    const { services } = this.#options;
    return this.#ports.map(({ port }, index) => ({ kind: services[index]!.kind, port, service: this.#found[index]!.record }));
  }

  /** Closes ports and connection. Safe to call again. */
  async close(): Promise<void> {
    this.#lossReport.stop();
    await Promise.all([this.#closePorts(), this.#link.close()]);
  }

  async #open(): Promise<void> {
    const { services, connection } = this.#options;
    if (services.length > MAX_SERVICES)
      throw new LocalError('INVALID_ARGUMENT', `at most ${MAX_SERVICES} services of a device can be forwarded at a time`);
    this.#found = await this.#ask(connection);
    try {
      for (const service of services) this.#ports.push(await this.#listenFor(service));
    } catch (error) {
      await this.#closePorts();
      throw error;
    }
    if (this.#udpPorts.length > 0) this.#lossReport.start();
    this.#link.start(connection);
  }

  async #listenFor(service: ForwardedService): Promise<LocalPort> {
    try {
      return await this.#listen(service);
    } catch (error) {
      throw new LocalPortError(service, asSvcError(error));
    }
  }

  #listen(service: ForwardedService): Promise<LocalPort> {
    const { environment, address = '127.0.0.1' } = this.#options;
    const { kind, localPort = 0 } = service;
    const onRefused = (error: SvcError): void => this.#options.onEvent?.({ kind: 'refused', service, error });
    return kind === 'tcp'
      ? TcpPort.listen({ clock: environment.clock, port: localPort, address, onRefused })
      : this.#listenUdp({ host: environment, address, onRefused }, localPort);
  }

  async #listenUdp(parts: UdpTunnelParts, localPort: number): Promise<LocalPort> {
    const port = await UdpTunnelListener.listen(parts, localPort, {});
    this.#udpPorts.push(port);
    return port;
  }

  #totalLoss(): DatagramLoss {
    const counts = this.#udpPorts.map((port) => port.stats());
    const sum = (reason: 'tooLong' | 'dropped' | 'incomplete'): number => counts.reduce((all, one) => all + one[reason], 0);
    const lost = this.#lostBefore + (this.#session?.datagrams.lost ?? 0);
    return { tooLong: sum('tooLong'), dropped: sum('dropped'), incomplete: sum('incomplete'), lost };
  }

  async #connect(signal: AbortSignal): Promise<Connection> {
    const connection = await this.#options.connect(signal);
    try {
      this.#found = await this.#ask(connection);
      return connection;
    } catch (error) {
      await connection.close();
      throw error;
    }
  }

  #ask(connection: Connection): Promise<FoundService[]> {
    return Promise.all(this.#options.services.map(({ kind, id }) => connection.findService(kind, id)));
  }

  #connected(connection: Connection): void {
    connection.on('rest', ({ reason }) => this.#report({ kind: 'resting', error: reason }));
    connection.on('resume', () => this.#resumed());
    connection.on('cramped', () => this.#report({ kind: 'cramped' }));
    connection.on('relieved', () => this.#report({ kind: 'relieved' }));
    this.#lostBefore += this.#session?.datagrams.lost ?? 0;
    this.#session = this.#found[0]?.session ?? null;
    for (const [index, { session, record }] of this.#found.entries()) this.#ports[index]?.attach(session, record.streamPort);
    this.#report({ kind: 'connected', connection });
  }

  #resumed(): void {
    for (const port of this.#ports) port.resume?.();
    this.#report({ kind: 'resumed' });
  }

  #ended(error: SvcError): void {
    this.#lossReport.stop();
    this.#report({ kind: 'ended', error });
  }

  #report(event: ForwardingEvent): void {
    this.#options.onEvent?.(event);
  }

  async #closePorts(): Promise<void> {
    await Promise.all(this.#ports.splice(0).map((port) => port.close()));
  }
}
