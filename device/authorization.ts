/**
 * Authorization of what clients ask for: the application's one listener decides, and without a listener, without a verdict or when the
 * listener fails, the answer is no.
 */
import { LocalError } from '../protocol/errors/index.ts';
import type { Log } from '../transport/environment.ts';
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

/** True allows. Anything else denies. */
export type AuthorizationListener = (request: AuthorizationRequest) => boolean | undefined | Promise<boolean | undefined>;

/** The one listener, and no where there is none. */
export class Authorization {
  readonly #log: Log;
  #listener: AuthorizationListener | null = null;

  constructor(log: Log) {
    this.#log = log;
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
    try {
      return (await this.#listener?.({ action, attributes, connection })) === true;
    } catch (error) {
      this.#log.error('the authorization listener failed: denied', { action, error: String(error) });
      return false;
    }
  }
}
