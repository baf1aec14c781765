/** The device SDK's main class. `setup.ts` holds what is set before start, `parts.ts` builds the parts, `runtime.ts` runs them. */
import { LocalError, type SvcError } from '../protocol/errors/index.ts';
import { VERSION } from '../protocol/records/index.ts';
import { nodeEnvironment } from '../transport/node/index.ts';
import { AccessControl } from './access-control.ts';
import { DeviceAudit } from './audit/device.ts';
import type { AuditLog } from './audit/log.ts';
import type { AuthorizationListener, Grant } from './authorization.ts';
import type { CoapResource } from './coap-observers.ts';
import type { CoapHandler, CoapResourceOptions } from './coap-resources.ts';
import type { ConnectionListener, ConnectionRef, DeviceConnection } from './connections.ts';
import type { DeviceEvent } from './events.ts';
import type { Denial } from './iam/caller.ts';
import type { Iam } from './iam/iam.ts';
import { applyOptions, type DeviceOptions } from './options.ts';
import { DeviceParts } from './parts.ts';
import type { PasswordAuthenticationListener } from './password/requests.ts';
import type { PasswordSource } from './password/source.ts';
import { PushNotification } from './push.ts';
import { ServiceInvocation } from './service-invocation.ts';
import { DeviceSetup } from './setup.ts';
import type { StreamHandler, StreamListener } from './streams.ts';
import { createToken } from './tokens.ts';
import type { TcpTunnelService } from './tunnels/tunnels.ts';
import type { UdpTunnelService, UdpTunnelServiceStats } from './tunnels/udp.ts';

/** Receives each event, with the error that caused it, if any. */
export type DeviceEventListener = (event: DeviceEvent, reason: SvcError | null) => void;

/** A device: set it up, `start` it, `close` it. Cannot be started again. */
export class Device extends DeviceSetup {
  readonly #parts: DeviceParts;

  /** @throws LocalError as the setters of the options */
  constructor(options: DeviceOptions = {}) {
    const parts = new DeviceParts(options.environment ?? nodeEnvironment());
    super(parts);
    this.#parts = parts;
    applyOptions(this, options);
  }

  /** Version of this SDK. */
  static version(): string {
    return VERSION;
  }

  // What the device offers. Any time.

  /**
   * Serves a CoAP method and path; `{name}` segments match one segment and reach the handler as parameters. A GET that is observable: call
   * `notify` of the returned resource when it changed, and its observers get a new answer of the handler. `remove` takes it away; requests that are being
   * worked on are answered all the same.
   * @throws LocalError INVALID_ARGUMENT (also: /.well-known/core, paths below /p2p, /tcp-tunnels, /udp-tunnels and /iam, observable without GET); IN_USE
   */
  addCoapResource(method: string, path: string, handler: CoapHandler, options: CoapResourceOptions = {}): CoapResource {
    return this.#parts.resources.add(method, path, handler, options);
  }

  /** Serves streams to a port; 0: to an ephemeral one, which the listener names. @throws LocalError OPERATION_IN_PROGRESS (it has one), INVALID_ARGUMENT */
  addStreamListener(port: number, handler: StreamHandler): StreamListener {
    return this.#parts.streams.listen(port, handler);
  }

  /**
   * Lets clients that are authorized reach a TCP server. Its host is resolved once, now or when that failed at the next use, and stays where
   * it was found; a name that leads to link-local, metadata, multicast or unspecified addresses alone leads nowhere.
   * @throws LocalError INVALID_ARGUMENT; IN_USE when the id is taken
   */
  addTcpTunnelService(service: TcpTunnelService): void {
    this.#parts.tunnels.tcp.add(service);
  }

  /** What clients see of a service from now on. @throws LocalError NOT_FOUND; INVALID_ARGUMENT */
  setTcpTunnelServiceMetadata(id: string, metadata: Readonly<Record<string, string>>): void {
    this.#parts.tunnels.tcp.setMetadata(id, metadata);
  }

  /** Takes a service away; its connections are reset. @throws LocalError NOT_FOUND */
  removeTcpTunnelService(id: string): void {
    this.#parts.tunnels.tcp.remove(id);
  }

  /** As {@link addTcpTunnelService}, of a UDP server. @throws LocalError INVALID_ARGUMENT; IN_USE when the id is taken by a UDP service */
  addUdpTunnelService(service: UdpTunnelService): void {
    this.#parts.tunnels.udp.add(service);
  }

  /** What clients see of a UDP service from now on. @throws LocalError NOT_FOUND; INVALID_ARGUMENT */
  setUdpTunnelServiceMetadata(id: string, metadata: Readonly<Record<string, string>>): void {
    this.#parts.tunnels.udp.setMetadata(id, metadata);
  }

  /** Takes a UDP service away; its flows are reset. @throws LocalError NOT_FOUND */
  removeUdpTunnelService(id: string): void {
    this.#parts.tunnels.udp.remove(id);
  }

  /** Flows of a UDP service, and what became of their datagrams. @throws LocalError NOT_FOUND */
  udpTunnelServiceStats(id: string): UdpTunnelServiceStats {
    return this.#parts.tunnels.udp.stats(id);
  }

  // Who may do what.

  /**
   * Puts the device under access control: `iam` answers every authorization request and knows the users' passwords, the endpoints below /iam
   * are served, users' server connect tokens are on the list, and a deleted user's connections are closed. Once, before start.
   * @throws LocalError INVALID_STATE; IN_USE when there is access control, an authorization listener or one for passwords
   */
  setIam(iam: Iam): void {
    this.#parts.runtime.setup();
    if (this.#parts.accessControl !== null) throw new LocalError('IN_USE', 'the device has access control: only one is possible');
    this.#parts.accessControl = new AccessControl(iam, {
      clock: this.#parts.environment.clock,
      authorization: this.#parts.authorization,
      passwords: this.#parts.passwords,
      resources: this.#parts.resources,
      connections: this.#parts.connections,
      runtime: this.#parts.runtime,
      denied: (denial) => this.#parts.events.emit('denied', denial),
    });
    this.#parts.audit?.follow(iam);
  }

  /**
   * Binds a user to a connection whom the application has identified itself (by an OAuth token, for example), until it closes; null ends that. The
   * user of the client's key, and the one of a password, go before.
   * @throws LocalError INVALID_STATE without access control; NOT_FOUND without such a user; INVALID_CONNECTION when the connection is closed
   */
  authorizeConnection(connection: DeviceConnection, username: string | null): void {
    if (this.#parts.accessControl === null) throw new LocalError('INVALID_STATE', 'the device has no access control');
    this.#parts.accessControl.authorizeConnection(connection, username);
  }

  /**
   * Has starts, stops, refusals, and with access control every change of it, written into `log`; a change is on the disk before it is acknowledged
   * (docs/audit.md). Once, before start. The log stays the application's to close, after the device.
   * @throws LocalError INVALID_STATE; IN_USE when there is one
   */
  setAuditLog(log: AuditLog): void {
    this.#parts.runtime.setup();
    if (this.#parts.audit !== null) throw new LocalError('IN_USE', 'the device has an audit log: only one is possible');
    const audit = new DeviceAudit(log);
    this.#parts.audit = audit;
    this.onDenied((denial) => audit.denied(denial));
    this.onDeviceEvent((event) => audit.deviceEvent(event));
    this.#parts.passwords.onFailed = (failure) => audit.passwordFailed(failure);
    if (this.#parts.accessControl !== null) audit.follow(this.#parts.accessControl.iam);
  }

  /** Told of everything that a client was refused. Returns the function that removes the listener. */
  onDenied(listener: (denial: Denial) => void): () => void {
    return this.#parts.events.on('denied', listener);
  }

  /** The one who decides what clients may do. Returns the function that removes it. @throws LocalError IN_USE when there is one */
  onAuthorizationRequest(listener: AuthorizationListener): () => void {
    return this.#parts.authorization.listen(listener);
  }

  /** Asks the authorization listener on behalf of an application's own resource or stream. Never throws; no listener, no permission. */
  authorize(connection: DeviceConnection, action: string, attributes: Readonly<Record<string, string>> = {}): Promise<boolean> {
    return this.#parts.authorization.allows(connection, action, attributes);
  }

  /** The same for what goes on, such as a stream: `onRevoked` is called once, when it is no longer allowed or the connection ends. Null when it is denied. */
  grant(
    connection: DeviceConnection,
    action: string,
    attributes: Readonly<Record<string, string>>,
    onRevoked: () => void,
  ): Promise<Grant | null> {
    return this.#parts.authorization.grant(connection, action, attributes, onRevoked);
  }

  /** Asks the authorization listener again for every grant, tunnels among them. With `setIam` that happens by itself. */
  reconsiderGrants(): void {
    this.#parts.authorization.reconsider();
  }

  // What the device may reach through its base station.

  createPushNotification(): PushNotification {
    return new PushNotification((request) => this.#parts.runtime.ask(request));
  }

  createServiceInvocation(): ServiceInvocation {
    return new ServiceInvocation((request) => this.#parts.runtime.ask(request));
  }

  /** The one who knows the users' passwords, asked at each login. Returns the function that removes it. @throws LocalError IN_USE */
  onPasswordAuthenticationRequest(listener: PasswordAuthenticationListener): () => void {
    return this.#parts.passwords.listen(listener);
  }

  /** The same for a store of users. @throws LocalError IN_USE */
  setPasswordSource(source: PasswordSource): () => void {
    return this.#parts.passwords.use(source);
  }

  // Server connect tokens.

  /** A fresh token of 12 characters. It is not added: keep it, and give it to `addServerConnectToken` at every start. */
  createServerConnectToken(): string {
    return createToken(this.#parts.environment.crypto);
  }

  /** Clients with this token are let through by the base station. Uploaded at once when attached. @throws LocalError INVALID_ARGUMENT */
  addServerConnectToken(token: string): void {
    if (this.#parts.runtime.tokens.add(token)) this.#parts.runtime.tokensChanged();
  }

  /** The base station lets nobody through by it any more, as soon as it knows. A token of a user's stays. @throws LocalError NOT_FOUND */
  removeServerConnectToken(token: string): void {
    if (this.#parts.runtime.tokens.remove(token)) this.#parts.runtime.tokensChanged();
  }

  /** True when the base station has all tokens, or the device is not attached (it uploads them when it attaches). */
  areServerConnectTokensSynchronized(): boolean {
    return !this.#parts.runtime.attached || this.#parts.runtime.tokens.synchronized;
  }

  // Events. Each returns the function that removes the listener.
  onDeviceEvent(listener: DeviceEventListener): () => void {
    return this.#parts.events.on('deviceEvent', ({ event, reason }) => listener(event, reason));
  }

  onConnectionEvent(listener: ConnectionListener): () => void {
    return this.#parts.connections.onEvent(listener);
  }
  /** The connection of a number. @throws LocalError INVALID_CONNECTION when it is closed */
  connection(ref: ConnectionRef): DeviceConnection {
    return this.#parts.connections.byRef(ref);
  }

  /** Attach to the base station or not. Any time before close. @throws LocalError INVALID_STATE after close, or when started without a base station set */
  setBasestationAttach(attach: boolean): void {
    this.#parts.runtime.setBasestationAttach(attach);
  }

  /**
   * Opens the sockets and begins to attach; does not wait for the attach to hold (event ATTACHED). @throws LocalError INVALID_STATE (key, ids or base station
   * missing, root certificates beside a fingerprint, started or closed before); ADDRESS_IN_USE
   */
  async start(): Promise<void> {
    await this.#parts.runtime.start();
    await this.#parts.audit?.started(this.#parts.runtime.settings);
  }

  /** Detaches, closes all connections and the sockets. The last event is CLOSED. @throws LocalError INVALID_STATE when it does not run */
  async close(): Promise<void> {
    await this.#parts.runtime.close();
    await this.#parts.passwords.close();
    await this.#parts.audit?.stopped();
  }
}
