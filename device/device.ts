/** The device SDK's main class. `setup.ts` holds the setters, `parts.ts` builds the parts, `runtime.ts` runs them. */

import { nodeEnvironment } from '../platform/node/index.ts';
import { callback, check, isInstance, orNull, text, textMap } from '../protocol/arguments.ts';
import { LocalError, type SvcError } from '../protocol/errors/index.ts';
import { VERSION } from '../protocol/records/index.ts';
import type { DatagramLoss } from '../runtime/session/index.ts';
import { AccessControl } from './access-control.ts';
import { DeviceAudit } from './audit/device.ts';
import { AuditLog } from './audit/log.ts';
import type { AuthorizationListener, Grant } from './authorization.ts';
import type { CoapResource } from './coap-observers.ts';
import type { CoapHandler, CoapResourceOptions } from './coap-resources.ts';
import { type ConnectionListener, type ConnectionRef, DeviceConnection } from './connections.ts';
import type { DeviceEvent } from './events.ts';
import type { Denial } from './iam/caller.ts';
import { Iam } from './iam/iam.ts';
import { applyOptions, checkDeviceOptions, type DeviceOptions } from './options.ts';
import { DeviceParts } from './parts.ts';
import type { PasswordAuthenticationListener, PasswordSource } from './password/requests.ts';
import { PushNotification } from './push.ts';
import { ServiceInvocation } from './service-invocation.ts';
import { DeviceSetup } from './setup.ts';
import type { StreamHandler, StreamListener } from './streams.ts';
import { createToken } from './tokens.ts';
import type { TcpTunnelService } from './tunnels/tunnels.ts';
import type { UdpTunnelService, UdpTunnelServiceStats } from './tunnels/udp.ts';

const CONNECTION = isInstance(DeviceConnection);

function checkAuthorization(connection: DeviceConnection, action: string, attributes: Readonly<Record<string, string>>): void {
  check('the connection', connection, CONNECTION);
  check('the action', action, text);
  check('the attributes', attributes, textMap);
}

/** Receives each event, with the error that caused it, if any. */
export type DeviceEventListener = (event: DeviceEvent, reason: SvcError | null) => void;

/** A device: set it up, `start` it, `close` it. It cannot be started again. */
export class Device extends DeviceSetup {
  readonly #parts: DeviceParts;

  /** @throws LocalError as the setters of the options */
  constructor(options: DeviceOptions = {}) {
    checkDeviceOptions(options);
    const parts = new DeviceParts(options.environment ?? nodeEnvironment());
    super(parts);
    this.#parts = parts;
    applyOptions(this, options);
  }

  /** Version of this SDK. */
  static version(): string {
    return VERSION;
  }

  // The services of the device. They can be changed at any time.

  /**
   * Serves a CoAP method and path. A `{name}` segment matches one segment and is passed to the handler as a parameter.
   * For an observable GET, call `notify` of the returned resource when it has changed; its observers then get a new
   * answer from the handler. `remove` removes the resource; requests under way are still answered.
   * @throws LocalError INVALID_ARGUMENT (also: /.well-known/core, paths below /p2p, /tcp-tunnels, /udp-tunnels and
   *   /iam, observable without GET); IN_USE
   */
  addCoapResource(method: string, path: string, handler: CoapHandler, options: CoapResourceOptions = {}): CoapResource {
    return this.#parts.resources.add(method, path, handler, options);
  }

  /**
   * Serves streams to a port; 0 picks an ephemeral port, named by the listener.
   * @throws LocalError OPERATION_IN_PROGRESS (the port has a listener), INVALID_ARGUMENT
   */
  addStreamListener(port: number, handler: StreamHandler): StreamListener {
    return this.#parts.streams.listen(port, handler);
  }

  /**
   * Lets authorized clients reach a TCP server. Its host is resolved once, now or, if that fails, at the next use, and
   * its addresses are pinned and tried in turn. A name that resolves only to link-local, metadata, multicast or
   * unspecified addresses is refused.
   * @throws LocalError INVALID_ARGUMENT; IN_USE when the id is taken
   */
  addTcpTunnelService(service: TcpTunnelService): void {
    this.#parts.tunnels.tcp.add(service);
  }

  /** Replaces the metadata that clients see. @throws LocalError NOT_FOUND; INVALID_ARGUMENT */
  setTcpTunnelServiceMetadata(id: string, metadata: Readonly<Record<string, string>>): void {
    this.#parts.tunnels.tcp.setMetadata(id, metadata);
  }

  /** Removes a service and resets its connections. @throws LocalError NOT_FOUND */
  removeTcpTunnelService(id: string): void {
    this.#parts.tunnels.tcp.remove(id);
  }

  /**
   * Like {@link addTcpTunnelService}, for a UDP server.
   * @throws LocalError INVALID_ARGUMENT; IN_USE when the id is taken by a UDP service
   */
  addUdpTunnelService(service: UdpTunnelService): void {
    this.#parts.tunnels.udp.add(service);
  }

  /** Replaces the metadata that clients see of a UDP service. @throws LocalError NOT_FOUND; INVALID_ARGUMENT */
  setUdpTunnelServiceMetadata(id: string, metadata: Readonly<Record<string, string>>): void {
    this.#parts.tunnels.udp.services.setMetadata(id, metadata);
  }

  /** Removes a UDP service and resets its flows. @throws LocalError NOT_FOUND */
  removeUdpTunnelService(id: string): void {
    this.#parts.tunnels.udp.remove(id);
  }

  /** Returns the open flows of a UDP service and its datagram counts. @throws LocalError NOT_FOUND */
  udpTunnelServiceStats(id: string): UdpTunnelServiceStats {
    return this.#parts.tunnels.udp.stats(id);
  }

  // Access control.

  /**
   * Puts the device under access control. `iam` answers every authorization request and knows the users' passwords; the
   * endpoints below /iam are served; users' server connect tokens are on the list; a deleted user's connections are
   * closed. Call it once, before start.
   * @throws LocalError INVALID_STATE; IN_USE when there is access control, an authorization listener or a source of
   *   passwords
   */
  setIam(iam: Iam): void {
    check('access control', iam, isInstance(Iam));
    this.#parts.runtime.setup();
    if (this.#parts.accessControl !== null) throw new LocalError('IN_USE', 'the device already has access control');
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
   * Binds a user to a connection until it closes; null ends that. For clients that the application itself has
   * identified, for example by an OAuth token. The user of the client's key, and the one of a password, take
   * precedence.
   * @throws LocalError INVALID_STATE without access control; NOT_FOUND without such a user; INVALID_CONNECTION when the
   *   connection is closed
   */
  authorizeConnection(connection: DeviceConnection, username: string | null): void {
    check('the connection', connection, CONNECTION);
    check('the user name', username, orNull(text));
    if (this.#parts.accessControl === null) throw new LocalError('INVALID_STATE', 'the device has no access control');
    this.#parts.accessControl.authorizeConnection(connection, username);
  }

  /**
   * Records starts, stops, refusals, and under access control every change to it, in `log`; a change is on disk before
   * it is acknowledged (docs/audit.md). Call it once, before start. The application closes the log, after the device.
   * @throws LocalError INVALID_STATE; IN_USE when there is one
   */
  setAuditLog(log: AuditLog): void {
    check('the audit log', log, isInstance(AuditLog));
    this.#parts.runtime.setup();
    if (this.#parts.audit !== null) throw new LocalError('IN_USE', 'the device already has an audit log');
    const audit = new DeviceAudit(log);
    this.#parts.audit = audit;
    this.onDenied((denial) => audit.denied(denial));
    this.onDeviceEvent((event) => audit.deviceEvent(event));
    this.#parts.passwords.onFailed = (failure) => audit.passwordFailed(failure);
    if (this.#parts.accessControl !== null) audit.follow(this.#parts.accessControl.iam);
  }

  /** Calls `listener` for every refusal to a client. Returns the function that removes the listener. */
  onDenied(listener: (denial: Denial) => void): () => void {
    check('the listener', listener, callback);
    return this.#parts.events.on('denied', listener);
  }

  /**
   * Sets the listener that decides what clients may do. Returns the function that removes it.
   * @throws LocalError IN_USE when there is one
   */
  onAuthorizationRequest(listener: AuthorizationListener): () => void {
    return this.#parts.authorization.listen(listener);
  }

  /**
   * Asks the authorization listener on behalf of an application's own resource or stream. Denied without a listener.
   * @throws LocalError INVALID_ARGUMENT, and nothing else
   */
  async authorize(connection: DeviceConnection, action: string, attributes: Readonly<Record<string, string>> = {}): Promise<boolean> {
    checkAuthorization(connection, action, attributes);
    return this.#parts.authorization.allows(connection, action, attributes);
  }

  /**
   * Like `authorize`, for a lasting permission such as a stream: calls `onRevoked` once, when it is no longer allowed
   * or the connection ends. Null when denied.
   * @throws as authorize
   */
  async grant(
    connection: DeviceConnection,
    action: string,
    attributes: Readonly<Record<string, string>>,
    onRevoked: () => void,
  ): Promise<Grant | null> {
    checkAuthorization(connection, action, attributes);
    check('onRevoked', onRevoked, callback);
    return this.#parts.authorization.grant(connection, action, attributes, onRevoked);
  }

  /**
   * Asks the authorization listener again for every grant, including those of tunnels. With `setIam` this is automatic.
   */
  reconsiderGrants(): void {
    this.#parts.authorization.reconsider();
  }

  // Calls to the outside, through the base station.

  createPushNotification(): PushNotification {
    return new PushNotification((request) => this.#parts.runtime.ask(request));
  }

  createServiceInvocation(): ServiceInvocation {
    return new ServiceInvocation((request) => this.#parts.runtime.ask(request));
  }

  /**
   * Sets the listener that supplies users' passwords, asked at each login. Returns the function that removes it.
   * @throws LocalError IN_USE
   */
  onPasswordAuthenticationRequest(listener: PasswordAuthenticationListener): () => void {
    return this.#parts.passwords.listen(listener);
  }

  /** Like `onPasswordAuthenticationRequest`, for a store of users. @throws LocalError IN_USE */
  setPasswordSource(source: PasswordSource): () => void {
    return this.#parts.passwords.use(source);
  }

  // Server connect tokens.

  /**
   * Returns a fresh token of 12 characters, without adding it. Store it, and pass it to `addServerConnectToken` at
   * every start.
   */
  createServerConnectToken(): string {
    return createToken(this.#parts.environment.crypto);
  }

  /**
   * Adds a token that lets clients connect through the base station. Uploaded at once when attached.
   * @throws LocalError INVALID_ARGUMENT
   */
  addServerConnectToken(token: string): void {
    if (this.#parts.runtime.tokens.add(token)) this.#parts.runtime.tokensChanged();
  }

  /**
   * Removes a token: the base station rejects it as soon as it has the new list. A token that also belongs to a user
   * stays.
   * @throws LocalError NOT_FOUND
   */
  removeServerConnectToken(token: string): void {
    if (this.#parts.runtime.tokens.remove(token)) this.#parts.runtime.tokensChanged();
  }

  /** True when the base station has all tokens, or the device is not attached (it uploads them when it attaches). */
  areServerConnectTokensSynchronized(): boolean {
    return !this.#parts.runtime.attached || this.#parts.runtime.tokens.synchronized;
  }

  // Events. Each returns the function that removes the listener.
  onDeviceEvent(listener: DeviceEventListener): () => void {
    check('the listener', listener, callback);
    return this.#parts.events.on('deviceEvent', ({ event, reason }) => listener(event, reason));
  }

  /** Calls `listener` at most once a minute with the datagrams of UDP services that were lost here, or sent in vain. */
  onDatagramLoss(listener: (loss: DatagramLoss) => void): () => void {
    check('the listener', listener, callback);
    return this.#parts.events.on('datagramLoss', listener);
  }

  onConnectionEvent(listener: ConnectionListener): () => void {
    return this.#parts.connections.onEvent(listener);
  }
  /** Returns the connection with this number. @throws LocalError INVALID_CONNECTION when it is closed or unknown */
  connection(ref: ConnectionRef): DeviceConnection {
    return this.#parts.connections.byRef(ref);
  }

  /**
   * Sets whether to attach to the base station. May be called at any time before close.
   * @throws LocalError INVALID_STATE after close, or when started without a base station set
   */
  setBasestationAttach(attach: boolean): void {
    this.#parts.runtime.setBasestationAttach(attach);
  }

  /**
   * Opens the sockets and begins to attach, without waiting until attached (event ATTACHED).
   * @throws LocalError INVALID_STATE (key, ids or base station missing, root certificates together with a fingerprint,
   *   started or closed before); ADDRESS_IN_USE; STOPPED when it was closed meanwhile
   */
  async start(): Promise<void> {
    await this.#parts.runtime.start();
    await this.#parts.audit?.started(this.#parts.runtime.settings);
  }

  /**
   * Detaches, closes all connections and the sockets, and stops a start under way. The last event is CLOSED.
   * @throws LocalError INVALID_STATE unless it is running or being started
   */
  async close(): Promise<void> {
    await this.#parts.runtime.close();
    await this.#parts.passwords.close();
    await this.#parts.audit?.stopped();
  }
}
