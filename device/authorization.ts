/**
 * Authorization of client requests: one listener decides, the application's or access control's. Without a listener,
 * without a verdict in time, or when the listener fails, the request is denied.
 *
 * A long-lived permission, such as that of a tunnel, holds a grant. When something changes that verdicts depend on, the
 * listener is asked again for every grant; a grant it now denies is revoked.
 */

import type { Clock, Log } from '../platform/environment.ts';
import { callback, check } from '../protocol/arguments.ts';
import { LocalError } from '../protocol/errors/index.ts';
import type { DeviceConnection } from './connections.ts';

/** A client's request for permission. */
export interface AuthorizationRequest {
  /** The action, for example `TcpTunnel:Connect`. */
  readonly action: string;
  /** Attributes of the request, for example `TcpTunnel:ServiceId`. */
  readonly attributes: Readonly<Record<string, string>>;
  /** The client's connection. */
  readonly connection: DeviceConnection;
}

/** A lasting permission of a client. It ends with the client's connection. */
export interface Grant {
  /** Ends the grant when its use is over. Safe to call again. */
  release(): void;
}

/** True allows. Anything else denies, and so does a verdict that takes longer than 10 s. */
export type AuthorizationListener = (request: AuthorizationRequest) => boolean | undefined | Promise<boolean | undefined>;

/** Longest time for a verdict, ms. */
const VERDICT_TIMEOUT = 10_000;

interface Held {
  readonly request: AuthorizationRequest;
  readonly onRevoked: () => void;
  /** Stops listening for the end of the connection. */
  readonly stop: () => void;
}

/** Asks the one listener; denies where there is none. */
export class Authorization {
  readonly #clock: Pick<Clock, 'schedule'>;
  readonly #log: Log;
  readonly #onDenied: (request: AuthorizationRequest) => void;
  readonly #grants = new Set<Held>();
  #listener: AuthorizationListener | null = null;
  #reconsidering = false;

  /** @param onDenied called for every denial */
  constructor({ clock, log }: { clock: Pick<Clock, 'schedule'>; log: Log }, onDenied: (request: AuthorizationRequest) => void) {
    this.#clock = clock;
    this.#log = log;
    this.#onDenied = onDenied;
  }

  /** @throws LocalError IN_USE when there is a listener. Returns the function that removes it. */
  listen(listener: AuthorizationListener): () => void {
    check('the authorization listener', listener, callback);
    if (this.#listener !== null) throw new LocalError('IN_USE', 'the device already has an authorization listener');
    this.#listener = listener;
    return () => {
      if (this.#listener === listener) this.#listener = null;
    };
  }

  /** Returns the verdict. Never throws. */
  async allows(connection: DeviceConnection, action: string, attributes: Readonly<Record<string, string>> = {}): Promise<boolean> {
    const request = { action, attributes, connection };
    const allowed = await this.#verdict(request);
    if (!allowed) this.#onDenied(request);
    return allowed;
  }

  /** Like `allows`, but for information only: no denial is reported. */
  wouldAllow(connection: DeviceConnection, action: string): Promise<boolean> {
    return this.#verdict({ action, attributes: {}, connection });
  }

  /**
   * Like `allows`, for a lasting permission: calls `onRevoked` once, when it is no longer allowed or the connection has
   * ended. Null when denied. Never throws.
   */
  async grant(
    connection: DeviceConnection,
    action: string,
    attributes: Readonly<Record<string, string>>,
    onRevoked: () => void,
  ): Promise<Grant | null> {
    if (!connection.isOpen) return null;
    const stop = connection.onClosed(() => this.#revoke(held));
    const held: Held = { request: { action, attributes, connection }, onRevoked, stop };
    // Added before the listener decides, so that a change in the meantime counts.
    this.#grants.add(held);
    const allowed = await this.allows(connection, action, attributes);
    if (!allowed) this.#end(held);
    return this.#grants.has(held) ? { release: () => void this.#end(held) } : null;
  }

  /** Returns false if it had already ended. */
  #end(held: Held): boolean {
    held.stop();
    return this.#grants.delete(held);
  }

  /** Asks again for every grant, after a change that verdicts depend on. Consecutive calls count as one. */
  reconsider(): void {
    if (this.#reconsidering) return;
    this.#reconsidering = true;
    queueMicrotask(() => {
      this.#reconsidering = false;
      for (const held of [...this.#grants]) void this.#askAgain(held);
    });
  }

  async #askAgain(held: Held): Promise<void> {
    const { connection, action, attributes } = held.request;
    if (!(await this.allows(connection, action, attributes))) this.#revoke(held);
  }

  #revoke(held: Held): void {
    if (!this.#end(held)) return;
    try {
      held.onRevoked();
    } catch (error) {
      this.#log.error('a revoked grant could not be ended', { action: held.request.action, error: String(error) });
    }
  }

  async #verdict(request: AuthorizationRequest): Promise<boolean> {
    try {
      const verdict = this.#listener?.(request);
      return (typeof verdict === 'object' ? await this.#inTime(verdict, request) : verdict) === true;
    } catch (error) {
      this.#log.error('the authorization listener failed: denied', { action: request.action, error: String(error) });
      return false;
    }
  }

  #inTime(verdict: Promise<boolean | undefined>, { action }: AuthorizationRequest): Promise<boolean | undefined> {
    return new Promise((resolve, reject) => {
      const cancel = this.#clock.schedule(VERDICT_TIMEOUT, () => {
        this.#log.warn('the authorization listener returned no verdict in time: denied', { action });
        resolve(undefined);
      });
      verdict.then(resolve, reject).finally(cancel);
    });
  }
}
