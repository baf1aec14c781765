/**
 * TCP tunnel services: TCP servers near the device that clients may reach through it.
 *
 * A service has three CoAP endpoints (listed, described, asked for) and a stream port of its own. For each stream that arrives there: ask
 * the authorization listener again, look at the limit of the service's type, connect to the service's host and port, and only then accept
 * and carry bytes both ways. Removing a service ends its connections. Who may do what is the application's decision alone. A service's host
 * is one address for good (`service-host.ts`).
 */
import { Status } from '../protocol/coap/index.ts';
import { LocalError, StreamCode } from '../protocol/errors/index.ts';
import { CONTENT_FORMAT_CBOR, encodeTunnelService, encodeTunnelServiceIds } from '../protocol/records/index.ts';
import type { SessionStream } from '../transport/session/index.ts';
import type { Authorization } from './authorization.ts';
import type { CoapResources, DeviceCoapResponse } from './coap-resources.ts';
import type { DeviceConnection } from './connections.ts';
import { ServiceHost } from './service-host.ts';
import { checkLimit, checkPort } from './settings.ts';
import type { DeviceStream, StreamListener, StreamListeners } from './streams.ts';

/** A TCP server that clients may reach through the device. */
export interface TcpTunnelService {
  /** Name of the service: 1 to 64 characters without `/`. */
  readonly id: string;
  /** Kind of service, for limits and authorization: `http`, `ssh`, `rtsp` … */
  readonly type: string;
  /** Where it listens: a numeric address, or a name, which is resolved once: clients see, and reach, that address for ever. */
  readonly host: string;
  readonly port: number;
  /** Anything clients should know. */
  readonly metadata?: Readonly<Record<string, string>>;
}

/** A TCP connection to a service, ready to be joined with a stream. */
export interface TcpConnection {
  /** Carries bytes both ways, half closes included, until both directions have ended. Rejects when either side failed; both are aborted then. */
  join(stream: SessionStream): Promise<void>;
  /** Resets it. */
  abort(): void;
}

export type ConnectTcp = (host: string, port: number) => Promise<TcpConnection>;

interface Registered extends TcpTunnelService {
  readonly address: ServiceHost;
  metadata: Readonly<Record<string, string>>;
  readonly listener: StreamListener;
  readonly connections: Set<TcpConnection>;
}

export class TcpTunnels {
  readonly #authorization: Authorization;
  readonly #streams: StreamListeners;
  readonly #connectTcp: ConnectTcp;
  readonly #resolve: (host: string) => Promise<string[]>;
  readonly #services = new Map<string, Registered>();
  readonly #limits = new Map<string, number>();
  readonly #open = new Map<string, number>();

  /** @param resolve the numeric addresses of a host name */
  constructor(
    authorization: Authorization,
    streams: StreamListeners,
    resources: CoapResources,
    connectTcp: ConnectTcp,
    resolve: (host: string) => Promise<string[]>,
  ) {
    this.#authorization = authorization;
    this.#streams = streams;
    this.#connectTcp = connectTcp;
    this.#resolve = resolve;
    resources.addOwn('GET', '/tcp-tunnels/services', ({ connection }) => this.#list(connection));
    resources.addOwn('GET', '/tcp-tunnels/services/{serviceId}', (request) => this.#describe('TcpTunnel:GetService', request));
    resources.addOwn('GET', '/tcp-tunnels/connect/{serviceId}', (request) => this.#describe('TcpTunnel:Connect', request));
  }

  /** @throws LocalError INVALID_ARGUMENT; IN_USE when the id is taken */
  add(service: TcpTunnelService): void {
    check(service);
    if (this.#services.has(service.id)) throw new LocalError('IN_USE', `there is a tunnel service ${JSON.stringify(service.id)}`);
    const address = new ServiceHost(service.host, this.#resolve);
    const listener = this.#streams.listen(0, (stream) => this.#carry(service.id, stream));
    const { metadata = {} } = service;
    this.#services.set(service.id, { ...service, metadata: { ...metadata }, address, listener, connections: new Set() });
  }

  /** What clients see of it from now on. @throws LocalError NOT_FOUND; INVALID_ARGUMENT */
  setMetadata(id: string, metadata: Readonly<Record<string, string>>): void {
    const service = this.#find(id);
    checkMetadata(metadata);
    service.metadata = { ...metadata };
  }

  /** Its connections are reset. @throws LocalError NOT_FOUND */
  remove(id: string): void {
    const service = this.#find(id);
    this.#services.delete(id);
    service.listener.close();
    for (const connection of service.connections) connection.abort();
  }

  /** Connections at a time to all services of a type; those above are refused, those there already stay. */
  limit(type: string, connections: number): void {
    this.#limits.set(type, checkLimit('tunnel connections', connections));
  }

  /** Ends everything. */
  close(): void {
    for (const id of [...this.#services.keys()]) this.remove(id);
  }

  async #list(connection: DeviceConnection): Promise<DeviceCoapResponse> {
    if (!(await this.#authorization.allows(connection, 'TcpTunnel:ListServices'))) return denied();
    return { status: Status.CONTENT, contentFormat: CONTENT_FORMAT_CBOR, payload: encodeTunnelServiceIds([...this.#services.keys()]) };
  }

  /** The service is looked up before the caller is authorized (reference §0). */
  async #describe(
    action: string,
    { parameters, connection }: { parameters: Readonly<Record<string, string>>; connection: DeviceConnection },
  ): Promise<DeviceCoapResponse> {
    const service = this.#services.get(parameters.serviceId ?? '');
    if (service === undefined) return { status: Status.NOT_FOUND, payload: 'No such service' };
    if (!(await this.#allows(action, service, connection))) return denied();
    const { id, type, port, metadata, listener } = service;
    const host = await service.address.address().catch(() => null);
    if (host === null) return { status: Status.SERVICE_UNAVAILABLE, payload: 'The host of the service does not resolve' };
    return {
      status: Status.CONTENT,
      contentFormat: CONTENT_FORMAT_CBOR,
      payload: encodeTunnelService({ id, type, host, port, streamPort: listener.port, metadata }),
    };
  }

  async #carry(id: string, stream: DeviceStream): Promise<void> {
    const service = this.#services.get(id);
    if (service === undefined) return stream.refuse(StreamCode.STREAM_REFUSED);
    // Permission goes first: who has none takes no place from those who have.
    if (!(await this.#allows('TcpTunnel:Connect', service, stream.connection))) return stream.refuse(StreamCode.FORBIDDEN);
    if (!this.#enter(service.type)) return stream.refuse(StreamCode.STREAM_LIMIT);
    try {
      const tcp = await this.#connectTcp(await service.address.address(), service.port);
      await this.#join(service, tcp, stream);
    } finally {
      this.#leave(service.type);
    }
  }

  async #join(service: Registered, tcp: TcpConnection, stream: DeviceStream): Promise<void> {
    if (this.#services.get(service.id) !== service) {
      tcp.abort();
      return stream.refuse(StreamCode.STREAM_REFUSED);
    }
    service.connections.add(tcp);
    const stopListening = stream.connection.onClosed(() => tcp.abort());
    try {
      await tcp.join(stream.accept());
    } finally {
      stopListening();
      service.connections.delete(tcp);
      tcp.abort();
    }
  }

  #allows(action: string, { id, type }: TcpTunnelService, connection: DeviceConnection): Promise<boolean> {
    return this.#authorization.allows(connection, action, { 'TcpTunnel:ServiceId': id, 'TcpTunnel:ServiceType': type });
  }

  #find(id: string): Registered {
    const service = this.#services.get(id);
    if (service === undefined) throw new LocalError('NOT_FOUND', `there is no tunnel service ${JSON.stringify(id)}`);
    return service;
  }

  #enter(type: string): boolean {
    const open = this.#open.get(type) ?? 0;
    if (open >= (this.#limits.get(type) ?? Number.POSITIVE_INFINITY)) return false;
    this.#open.set(type, open + 1);
    return true;
  }

  #leave(type: string): void {
    this.#open.set(type, (this.#open.get(type) ?? 1) - 1);
  }
}

function check({ id, type, host, port, metadata = {} }: TcpTunnelService): void {
  if (!/^[^/]{1,64}$/.test(id)) throw new LocalError('INVALID_ARGUMENT', 'the id of a tunnel service has 1 to 64 characters and no "/"');
  if (!/^.{1,64}$/.test(type)) throw new LocalError('INVALID_ARGUMENT', 'the type of a tunnel service has 1 to 64 characters');
  if (host === '') throw new LocalError('INVALID_ARGUMENT', 'a tunnel service needs a host');
  if (checkPort('port of a tunnel service', port) === 0) throw new LocalError('INVALID_ARGUMENT', 'the port of a tunnel service is not 0');
  checkMetadata(metadata);
}

function checkMetadata(metadata: Readonly<Record<string, string>>): void {
  if (Object.values(metadata).some((value) => typeof value !== 'string'))
    throw new LocalError('INVALID_ARGUMENT', 'the metadata of a tunnel service maps texts to texts');
}

function denied(): DeviceCoapResponse {
  return { status: Status.FORBIDDEN, payload: 'Access denied' };
}
