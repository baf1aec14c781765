/**
 * Tunnel services: TCP or UDP servers near the device that clients may reach through it.
 *
 * A service has three CoAP endpoints (list, description, request to connect) and a stream port of its own. For each
 * stream that arrives there: ask the authorization listener again, check the limits, connect to the service's host and
 * port, and only then accept and carry both ways. Removing a service ends its connections. Only the application decides
 * which client may do what. A service's host is pinned to its addresses (`pinned-address.ts`). `tcp.ts` and `udp.ts`
 * handle an accepted stream.
 */
import { check, checkOptions, type Kind, nonEmptyText, text, textMap, whole } from '../../protocol/arguments.ts';
import { Status } from '../../protocol/coap/index.ts';
import { LocalError, StreamCode } from '../../protocol/errors/index.ts';
import { CONTENT_FORMAT_CBOR, encodeTunnelService, encodeTunnelServiceIds } from '../../protocol/records/index.ts';
import type { Stream } from '../../runtime/session/index.ts';
import type { Authorization } from '../authorization.ts';
import type { CoapResources, DeviceCoapResponse } from '../coap-resources.ts';
import type { DeviceConnection } from '../connections.ts';
import { checkLimit } from '../settings.ts';
import type { DeviceStream, StreamListener, StreamListeners } from '../streams.ts';
import { TunnelConcurrencyLimit } from './concurrency-limit.ts';
import { PinnedAddresses } from './pinned-address.ts';

export { TunnelConcurrencyLimit };

/** A server that clients may reach through the device. */
export interface TunnelService {
  /** Name of the service: 1 to 64 characters without `/`. */
  readonly id: string;
  /** Kind of service, for limits and authorization: `http`, `ssh`, `dns` … */
  readonly type: string;
  /** A numeric address, or a name, which is resolved once: clients then see and reach its addresses. */
  readonly host: string;
  readonly port: number;
  /** Most concurrent connections to it, over all clients; default: no limit but those of the device. */
  readonly maxConnections?: number;
  /** Further information for clients. */
  readonly metadata?: Readonly<Record<string, string>>;
}

/** A TCP server that clients may reach through the device. */
export type TcpTunnelService = TunnelService;

/** A connection to a service, ready to be joined with a stream: a TCP connection, or a flow of datagrams. */
export interface TunnelConnection {
  /**
   * Carries both ways until both directions of the stream have ended. Rejects when either side failed; both are aborted
   * then.
   */
  join(stream: Stream): Promise<void>;
  /** Resets the connection. */
  abort(): void;
}

/** Connects to a service at one of its pinned addresses, for a client's connection. */
export type ConnectTunnel<S extends TunnelService> = (
  service: S,
  addresses: PinnedAddresses,
  client: DeviceConnection,
) => Promise<TunnelConnection>;

/** Names of the two kinds: of actions and attributes, and of the endpoints. */
const NAMES = {
  TCP: {
    action: 'TcpTunnel',
    list: '/tcp-tunnels/services',
    service: '/tcp-tunnels/services/{serviceId}',
    connect: '/tcp-tunnels/connect/{serviceId}',
  },
  UDP: {
    action: 'UdpTunnel',
    list: '/udp-tunnels/services',
    service: '/udp-tunnels/services/{serviceId}',
    connect: '/udp-tunnels/connect/{serviceId}',
  },
} as const;

/** The parts of a kind of tunnel. */
export interface TunnelsOptions<S extends TunnelService> {
  readonly kind: keyof typeof NAMES;
  readonly authorization: Authorization;
  readonly streams: StreamListeners;
  readonly resources: CoapResources;
  readonly connect: ConnectTunnel<S>;
  /** Datagrams of a UDP service that were lost here. */
  readonly lost?: (id: string) => number;
  /** Shared by all tunnels of the device. */
  readonly concurrency: TunnelConcurrencyLimit;
  /** Resolves a host name to numeric addresses. */
  readonly resolve: (host: string) => Promise<string[]>;
  /** Options of a service besides those of `TunnelService`. */
  readonly extra: Readonly<Record<Exclude<keyof S, keyof TunnelService>, Kind>>;
}

interface ServiceEntry<S> {
  readonly service: S;
  readonly addresses: PinnedAddresses;
  metadata: Readonly<Record<string, string>>;
  readonly listener: StreamListener;
  readonly connections: Set<TunnelConnection>;
  /** Connections that are open or being made. */
  held: number;
}

// The id is a segment of a path, which cannot be "." or ".." (RFC 7252 §5.10.1).
const ID: Kind = [
  (id) => text[0](id) && /^(?!\.{1,2}$)[^/]{1,64}$/.test(id as string),
  'text of 1 to 64 characters without "/", not "." or ".."',
];
const TYPE: Kind = [(type) => text[0](type) && /^.{1,64}$/.test(type as string), 'text of 1 to 64 characters'];

/** The services of one kind. */
export class Tunnels<S extends TunnelService> {
  readonly #options: TunnelsOptions<S>;
  readonly #action: string;
  readonly #services = new Map<string, ServiceEntry<S>>();
  readonly #limits = new Map<string, number>();
  readonly #open = new Map<string, number>();
  readonly #openOf = new WeakMap<DeviceConnection, number>();
  /** Concurrent tunnel connections of one client's connection, to all services. */
  limitPerClient = Number.POSITIVE_INFINITY;

  constructor(options: TunnelsOptions<S>) {
    this.#options = options;
    const { action, list, service, connect } = NAMES[options.kind];
    this.#action = action;
    options.resources.addOwn('GET', list, ({ connection }) => this.#list(connection));
    options.resources.addOwn('GET', service, (request) => this.#describe('GetService', request));
    options.resources.addOwn('GET', connect, (request) => this.#describe('Connect', request));
  }

  /** @throws LocalError INVALID_ARGUMENT; IN_USE when the id is taken */
  add(service: S): void {
    const kinds = {
      id: ID,
      type: TYPE,
      host: nonEmptyText,
      port: whole(1, 0xffff),
      maxConnections: whole(0),
      metadata: textMap,
      ...this.#options.extra,
    };
    checkOptions('a tunnel service', service, kinds as Record<keyof S, Kind>, ['id', 'type', 'host', 'port']);
    if (this.#services.has(service.id)) throw new LocalError('IN_USE', `there is already a tunnel service ${JSON.stringify(service.id)}`);
    const addresses = new PinnedAddresses(service.host, this.#options.resolve);
    const listener = this.#options.streams.listen(0, (stream) => this.#carry(service.id, stream));
    const metadata = { ...service.metadata };
    this.#services.set(service.id, { service: { ...service }, addresses, metadata, listener, connections: new Set(), held: 0 });
  }

  /** Replaces the metadata that clients see. @throws LocalError NOT_FOUND; INVALID_ARGUMENT */
  setMetadata(id: string, metadata: Readonly<Record<string, string>>): void {
    check('the metadata of a tunnel service', metadata, textMap);
    this.#find(id).metadata = { ...metadata };
  }

  /** Removes a service and resets its connections. @throws LocalError NOT_FOUND */
  remove(id: string): void {
    const { listener, connections } = this.#find(id);
    this.#services.delete(id);
    listener.close();
    for (const connection of connections) connection.abort();
  }

  /** Open connections to a service. @throws LocalError NOT_FOUND */
  open(id: string): number {
    return this.#find(id).connections.size;
  }

  /** Limits the concurrent connections to all services of a type; further ones are refused, open ones stay. */
  limit(type: string, connections: number): void {
    check('the type of a tunnel service', type, TYPE);
    this.#limits.set(type, checkLimit('tunnel connections', connections));
  }

  /** Ends everything. */
  close(): void {
    for (const id of [...this.#services.keys()]) this.remove(id);
  }

  async #list(connection: DeviceConnection): Promise<DeviceCoapResponse> {
    if (!(await this.#options.authorization.allows(connection, `${this.#action}:ListServices`))) return denied();
    return { status: Status.CONTENT, contentFormat: CONTENT_FORMAT_CBOR, payload: encodeTunnelServiceIds([...this.#services.keys()]) };
  }

  /** Looks the service up before it authorizes the caller. */
  async #describe(
    action: string,
    { parameters, connection }: { parameters: Readonly<Record<string, string>>; connection: DeviceConnection },
  ): Promise<DeviceCoapResponse> {
    const registered = this.#services.get(parameters.serviceId ?? '');
    if (registered === undefined) return { status: Status.NOT_FOUND, payload: 'No such service' };
    const { service, addresses, metadata, listener } = registered;
    if (!(await this.#allows(action, service, connection))) return denied();
    const { id, type, port } = service;
    const [host] = await addresses.all().catch(() => []);
    if (host === undefined) return { status: Status.SERVICE_UNAVAILABLE, payload: 'The host of the service does not resolve' };
    return {
      status: Status.CONTENT,
      contentFormat: CONTENT_FORMAT_CBOR,
      payload: encodeTunnelService({ id, type, host, port, streamPort: listener.port, metadata, lost: this.#options.lost?.(id) }),
    };
  }

  async #carry(id: string, stream: DeviceStream): Promise<void> {
    const registered = this.#services.get(id);
    if (registered === undefined) return stream.refuse(StreamCode.STREAM_REFUSED);
    const { service, addresses } = registered;
    // Asks for permission first, so that unauthorized clients take no slot.
    const revoked = new AbortController();
    const attributes = this.#attributes(service);
    const grant = await this.#options.authorization.grant(stream.connection, `${this.#action}:Connect`, attributes, () => revoked.abort());
    if (grant === null) return stream.refuse(StreamCode.FORBIDDEN);
    try {
      const leave = this.#enter(registered, stream.connection);
      if (leave === null) return stream.refuse(StreamCode.TUNNEL_LIMIT);
      try {
        const connection = await this.#options.connect(service, addresses, stream.connection);
        await this.#join(registered, connection, stream, revoked.signal);
      } finally {
        leave();
      }
    } finally {
      grant.release();
    }
  }

  async #join(registered: ServiceEntry<S>, connection: TunnelConnection, stream: DeviceStream, revoked: AbortSignal): Promise<void> {
    if (revoked.aborted || this.#services.get(registered.service.id) !== registered) {
      connection.abort();
      return stream.refuse(revoked.aborted ? StreamCode.FORBIDDEN : StreamCode.STREAM_REFUSED);
    }
    registered.connections.add(connection);
    try {
      // Throws if the client gave up while the device was connecting.
      const accepted = stream.accept();
      const withdraw = (): void => {
        accepted.abort(StreamCode.FORBIDDEN);
        connection.abort();
      };
      revoked.addEventListener('abort', withdraw, { once: true });
      await connection.join(accepted);
    } finally {
      registered.connections.delete(connection);
      connection.abort();
    }
  }

  #allows(action: string, { id, type }: S, connection: DeviceConnection): Promise<boolean> {
    return this.#options.authorization.allows(connection, `${this.#action}:${action}`, this.#attributes({ id, type }));
  }

  #attributes({ id, type }: Pick<S, 'id' | 'type'>): Record<string, string> {
    return { [`${this.#action}:ServiceId`]: id, [`${this.#action}:ServiceType`]: type };
  }

  #find(id: string): ServiceEntry<S> {
    check('the id of a tunnel service', id, ID);
    const registered = this.#services.get(id);
    if (registered === undefined) throw new LocalError('NOT_FOUND', `there is no tunnel service ${JSON.stringify(id)}`);
    return registered;
  }

  /** Takes a slot for one more connection. @returns the function that releases it; null when there is none */
  #enter(registered: ServiceEntry<S>, client: DeviceConnection): (() => void) | null {
    const { type, maxConnections = Number.POSITIVE_INFINITY } = registered.service;
    const open = this.#open.get(type) ?? 0;
    const openOf = this.#openOf.get(client) ?? 0;
    if (open >= (this.#limits.get(type) ?? Number.POSITIVE_INFINITY) || openOf >= this.limitPerClient) return null;
    if (registered.held >= maxConnections) return null;
    const release = this.#options.concurrency.acquire(client.clientFingerprint);
    if (release === null) return null;
    this.#open.set(type, open + 1);
    this.#openOf.set(client, openOf + 1);
    registered.held++;
    return () => {
      registered.held--;
      release();
      this.#open.set(type, (this.#open.get(type) ?? 1) - 1);
      this.#openOf.set(client, (this.#openOf.get(client) ?? 1) - 1);
    };
  }
}

function denied(): DeviceCoapResponse {
  return { status: Status.FORBIDDEN, payload: 'Access denied' };
}
