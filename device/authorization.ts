/**
 * Authorization of what clients ask for: the one listener, the application's or access control's, decides. Without a listener, without a verdict in
 * time or when the listener fails, the answer is no.
 *
 * What goes on for long, such as a tunnel, holds a grant. When something changes that verdicts rest upon, the listener is asked again for every grant;
 * where it now says no, the grant is revoked.
 */
import { LocalError } from '../protocol/errors/index.ts';
import type { Clock, Log } from '../transport/environment.ts';
import type { DeviceConnection } from './connections.ts';

/** What a client wants to do. */
export interface AuthorizationRequest {
  /** What is to be done, for example `TcpTunnel:Connect`. */
  readonly action: string;
  /** More about it, for example `TcpTunnel:ServiceId`. */
  readonly attributes: Readonly<Record<string, string>>;
  /** Who asks. */
  readonly connection: DeviceConnection;
}

/** What a client was allowed and still does. It ends with the client's connection. */
export interface Grant {
  /** It has ended by itself. May be called again. */
  release(): void;
}

/** True allows. Anything else denies, and so does a verdict that takes longer than 10 s. */
export type AuthorizationListener = (request: AuthorizationRequest) => boolean | undefined | Promise<boolean | undefined>;

/** ms a verdict may take. */
const VERDICT_TIMEOUT = 10_000;

interface Held {
  readonly request: AuthorizationRequest;
  readonly onRevoked: () => void;
  /** Stops listening for the end of the connection. */
  readonly stop: () => void;
}

/** The one listener, and no where there is none. */
export class Authorization {
  readonly #clock: Pick<Clock, 'schedule'>;
  readonly #log: Log;
  readonly #onDenied: (request: AuthorizationRequest) => void;
  readonly #grants = new Set<Held>();
  #listener: AuthorizationListener | null = null;
  #reconsidering = false;

  /** @param onDenied told of every no */
  constructor({ clock, log }: { clock: Pick<Clock, 'schedule'>; log: Log }, onDenied: (request: AuthorizationRequest) => void) {
    this.#clock = clock;
    this.#log = log;
    this.#onDenied = onDenied;
  }

  /** @throws LocalError IN_USE when there is a listener. Returns the function that removes it. */
  listen(listener: AuthorizationListener): () => void {
    if (this.#listener !== null) throw new LocalError('IN_USE', 'the device has an authorization listener: only one is possible');
    this.#listener = listener;
    return () => {
      if (this.#listener === listener) this.#listener = null;
    };
  }

  /** The verdict. Never throws. */
  async allows(connection: DeviceConnection, action: string, attributes: Readonly<Record<string, string>> = {}): Promise<boolean> {
    const request = { action, attributes, connection };
    const allowed = await this.#verdict(request);
    if (!allowed) this.#onDenied(request);
    return allowed;
  }

  /** The same for a question alone: nobody is refused anything, and nobody is told. */
  wouldAllow(connection: DeviceConnection, action: string): Promise<boolean> {
    return this.#verdict({ action, attributes: {}, connection });
  }

  /**
   * The same for what goes on: `onRevoked` is called once, when it is no longer allowed or the connection has ended. Null when it is denied. Never throws.
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
    // Held while the listener decides: what changes meanwhile counts.
    this.#grants.add(held);
    const allowed = await this.allows(connection, action, attributes);
    if (!allowed) this.#end(held);
    return this.#grants.has(held) ? { release: () => void this.#end(held) } : null;
  }

  /** False when it had ended before. */
  #end(held: Held): boolean {
    held.stop();
    return this.#grants.delete(held);
  }

  /** Something has changed that verdicts rest upon: asks again for every grant. Calls in a row count as one. */
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
      this.#log.error('what a client is no longer allowed could not be ended', { action: held.request.action, error: String(error) });
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
        this.#log.warn('the authorization listener gave no verdict in time: denied', { action });
        resolve(undefined);
      });
      verdict.then(resolve, reject).finally(cancel);
    });
  }
}
