/**
 * Authorization of what clients ask for: the one listener, the application's or access control's, decides. Without a listener, without a verdict in
 * time or when the listener fails, the answer is no.
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

/** True allows. Anything else denies, and so does a verdict that takes longer than 10 s. */
export type AuthorizationListener = (request: AuthorizationRequest) => boolean | undefined | Promise<boolean | undefined>;

/** ms a verdict may take. */
const VERDICT_TIMEOUT = 10_000;

/** The one listener, and no where there is none. */
export class Authorization {
  readonly #clock: Pick<Clock, 'schedule'>;
  readonly #log: Log;
  readonly #onDenied: (request: AuthorizationRequest) => void;
  #listener: AuthorizationListener | null = null;

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
