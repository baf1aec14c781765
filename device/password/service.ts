/**
 * Password authentication of a device's clients (PROTOCOL.md §8): the endpoints `POST /p2p/password/1` and `/2`.
 *
 * 1. Checks that a source exists (4.04), the body is CBOR (4.15) and valid (4.00), no other run is starting on this
 *    connection and the throttle allows one (4.29). Only then is the source asked, and the device's share made and
 *    sent.
 * 2. The same checks, and a run must have started (4.00). The attempt is charged (4.29) and the client's tag is checked
 *    (4.01); if it is right, the charge is refunded and the device's tag sent. From then on the connection is
 *    authenticated as that user, until it closes.
 *
 * A name without a password takes the same steps with a random password, and a Kdf and salt that stay the same: its
 * answers look like those of any other name. No password, share or tag is ever logged.
 */

import type { Clock, Log } from '../../platform/environment.ts';
import { callback, check, withMethods } from '../../protocol/arguments.ts';
import { Status } from '../../protocol/coap/index.ts';
import type { CryptoProvider } from '../../protocol/crypto-provider.ts';
import { LocalError, RemoteError } from '../../protocol/errors/index.ts';
import type { DeviceRun } from '../../protocol/password/exchange.ts';
import { type Kdf, type PasswordSecret, SALT_LENGTH, VALUE_LENGTH } from '../../protocol/password/kdf.ts';
import { loadExchange } from '../../protocol/password/load.ts';
import * as messages from '../../protocol/password/messages.ts';
import { CONTENT_FORMAT_CBOR } from '../../protocol/records/index.ts';
import type { CoapResources, DeviceCoapRequest, DeviceCoapResponse } from '../coap-resources.ts';
import type { DeviceConnection } from '../connections.ts';
import type { KeptDocument } from '../kept-document.ts';
import { listenerSource, type PasswordAuthenticationListener, type PasswordSource } from './requests.ts';
import { type AttemptClass, PasswordThrottle } from './throttle.ts';
import { ThrottleKeeper } from './throttle-keeper.ts';

/** Identity of a started device. */
export interface PasswordIdentity {
  readonly productId: string;
  readonly deviceId: string;
  /** Full hex. */
  readonly fingerprint: string;
  /** 32 bytes known only to this device and constant: the parameters of unknown names are derived from it. */
  readonly secret: Uint8Array;
}

/** The part of the device that the service uses. */
export interface PasswordContext {
  readonly crypto: CryptoProvider;
  readonly clock: Clock;
  readonly log: Log;
  readonly identity: () => PasswordIdentity;
}

/** A failed attempt. */
export interface PasswordFailure {
  readonly connection: DeviceConnection;
  /** As sent by the client: it may be an unknown name, or a password in the wrong field. */
  readonly username: string;
  /** A wrong password, or too many attempts. */
  readonly reason: 'wrong' | 'throttled';
}

/** The state of a connection's authentication. */
interface Progress {
  /** Number of the latest run. */
  runs: number;
  beginning: boolean;
  /** `run` is null when its password was withdrawn. */
  current: { readonly username: string; readonly run: DeviceRun | null } | null;
}

export class PasswordService {
  readonly #context: PasswordContext;
  readonly #throttle: PasswordThrottle;
  readonly #progress = new WeakMap<DeviceConnection, Progress>();
  #keeper: ThrottleKeeper | null = null;
  #source: PasswordSource | null = null;
  /** Passwords withdrawn so far. */
  #withdrawn = 0;
  /** Called for each failed attempt. */
  onFailed: ((failure: PasswordFailure) => void) | null = null;

  constructor({ crypto, clock, log }: Omit<PasswordContext, 'identity'>, identity: () => PasswordIdentity, resources: CoapResources) {
    const context = { crypto, clock, log, identity };
    this.#context = context;
    // The hash is the same after a restart, so that stored slots stay valid.
    this.#throttle = new PasswordThrottle((name) => context.crypto.hmacSha256(identity().secret, SLOT_LABEL, text.encode(name))[0]!);
    resources.addOwn('POST', messages.PasswordPath.FIRST, (request) => this.#checked(request, this.#first));
    resources.addOwn('POST', messages.PasswordPath.SECOND, (request) => this.#checked(request, this.#second));
  }

  /**
   * Uses the application's listener as the source. Returns the function that removes it.
   * @throws LocalError IN_USE when there is a source
   */
  listen(listener: PasswordAuthenticationListener): () => void {
    check('the password authentication listener', listener, callback);
    return this.use(listenerSource(listener, this.#context.clock, this.#context.log));
  }

  /**
   * Sets the source of passwords. Returns the function that removes it.
   * @throws LocalError IN_USE when there is a source
   */
  use(source: PasswordSource): () => void {
    check('the source of passwords', source, withMethods('lookup', 'kdfOf', 'isPaired'));
    if (this.#source !== null) throw new LocalError('IN_USE', 'the device already has a source of passwords');
    this.#source = source;
    return () => {
      if (this.#source === source) this.#source = null;
    };
  }

  /** Keeps the count of password attempts across restarts. Call it once, before start. */
  keepThrottle(store: KeptDocument): void {
    const { clock, log } = this.#context;
    this.#keeper = new ThrottleKeeper({ clock, log, store, throttle: this.#throttle });
  }

  /** Saves the count of attempts, after the device has closed. Never rejects. */
  async close(): Promise<void> {
    await this.#keeper?.close();
  }

  /** Fails all runs with the old password of a name, which was changed or removed. @param connections all open ones */
  withdraw(username: string, connections: Iterable<DeviceConnection>): void {
    this.#withdrawn++;
    for (const connection of connections) {
      const progress = this.#progress.get(connection);
      if (progress?.current?.username !== username) continue;
      progress.current.run?.wipe();
      progress.current = { username, run: null };
    }
  }

  async #checked(
    request: DeviceCoapRequest,
    serve: (request: DeviceCoapRequest, source: PasswordSource) => Promise<DeviceCoapResponse>,
  ): Promise<DeviceCoapResponse> {
    if (this.#source === null) return { status: Status.NOT_FOUND, payload: 'No password authentication' };
    if (request.contentFormat !== CONTENT_FORMAT_CBOR) return { status: Status.UNSUPPORTED_CONTENT_FORMAT, payload: 'Expected CBOR' };
    try {
      return await serve.call(this, request, this.#source);
    } catch (error) {
      if (error instanceof RemoteError) return { status: Status.BAD_REQUEST, payload: error.message };
      throw error;
    }
  }

  async #first({ payload, connection }: DeviceCoapRequest, source: PasswordSource): Promise<DeviceCoapResponse> {
    const { username } = messages.decodePasswordRequest(payload);
    const progress = this.#progressOf(connection);
    if (progress.beginning) return tooMany();
    if (!this.#throttle.begin(classOf(source, username, connection), username, this.#context.clock.now())) {
      this.onFailed?.({ connection, username, reason: 'throttled' });
      return tooMany();
    }
    progress.beginning = true;
    try {
      let withdrawn = this.#withdrawn;
      let secret = await this.#lookup(source, username, connection);
      const { DeviceRun } = await loadExchange();
      // A password withdrawn meanwhile may have been this one.
      while (withdrawn !== this.#withdrawn) {
        withdrawn = this.#withdrawn;
        secret.value.fill(0);
        secret = await this.#lookup(source, username, connection);
      }
      return this.#offer(DeviceRun, username, secret, connection, progress);
    } finally {
      progress.beginning = false;
    }
  }

  #offer(
    Run: typeof DeviceRun,
    username: string,
    secret: PasswordSecret,
    connection: DeviceConnection,
    progress: Progress,
  ): DeviceCoapResponse {
    const { crypto, identity } = this.#context;
    const { productId, deviceId, fingerprint } = identity();
    const { handshakeHash, clientFingerprint } = connection;
    progress.current?.run?.wipe();
    const number = ++progress.runs;
    const names = { productId, deviceId, username, clientFingerprint, deviceFingerprint: fingerprint };
    const run = new Run(crypto, { handshakeHash, run: number, ...names }, secret.kdf, secret.value);
    secret.value.fill(0);
    progress.current = { username, run };
    const salt = secret.kdf === 1 ? secret.salt : null;
    return created(messages.encodePasswordOffer({ kdf: secret.kdf, salt, run: number, share: run.share }));
  }

  async #second({ payload, connection }: DeviceCoapRequest, source: PasswordSource): Promise<DeviceCoapResponse> {
    const proof = messages.decodePasswordProof(payload);
    const progress = this.#progressOf(connection);
    const { current } = progress;
    progress.current = null;
    if (current === null) return { status: Status.BAD_REQUEST, payload: 'No run of password authentication has begun' };
    const { username, run } = current;
    const charge = this.#throttle.charge(classOf(source, username, connection), username, this.#context.clock.now());
    if (charge === null) {
      run?.wipe();
      this.onFailed?.({ connection, username, reason: 'throttled' });
      return tooMany();
    }
    const tag = run === null ? null : run.confirm(proof);
    if (tag === null || tag === undefined) {
      this.#keeper?.changed();
      this.onFailed?.({ connection, username, reason: 'wrong' });
      if (tag === undefined) return { status: Status.BAD_REQUEST, payload: 'Y is not an element of the group' };
      return { status: Status.UNAUTHORIZED, payload: 'Wrong user name or password' };
    }
    charge.giveBack();
    connection.setPasswordUsername(username);
    return created(messages.encodePasswordConfirmation({ tag }));
  }

  async #lookup(source: PasswordSource, username: string, connection: DeviceConnection): Promise<PasswordSecret> {
    // Made for every name, so that a known one is not answered sooner.
    const unknown = this.#unknown(source.kdfOf(username), username);
    try {
      return (await source.lookup(username, connection)) ?? unknown;
    } catch (error) {
      this.#context.log.error('a password could not be looked up', { error: String(error) });
      return unknown;
    }
  }

  /** The parameters shown for a name without a password, with a random value. */
  #unknown(kdf: Kdf, username: string): PasswordSecret {
    const { crypto, identity } = this.#context;
    const value = crypto.randomBytes(VALUE_LENGTH);
    const salt = crypto.hmacSha256(identity().secret, text.encode(username)).slice(0, SALT_LENGTH);
    return kdf === 0 ? { kdf: 0, value } : { kdf: 1, salt, value };
  }

  #progressOf(connection: DeviceConnection): Progress {
    let progress = this.#progress.get(connection);
    if (progress === undefined) {
      const made: Progress = { runs: 0, beginning: false, current: null };
      connection.onClosed(() => made.current?.run?.wipe());
      this.#progress.set(connection, made);
      progress = made;
    }
    return progress;
  }
}

const text = new TextEncoder();
const SLOT_LABEL = text.encode('throttle slot ');

function classOf(source: PasswordSource, username: string, connection: DeviceConnection): AttemptClass {
  if (source.isPaired(username, connection)) return 'paired';
  return connection.isLocal ? 'local' : 'remote';
}

function created(payload: Uint8Array): DeviceCoapResponse {
  return { status: Status.CREATED, contentFormat: CONTENT_FORMAT_CBOR, payload };
}

function tooMany(): DeviceCoapResponse {
  return { status: Status.TOO_MANY_REQUESTS, payload: 'Too many attempts, try again later' };
}
