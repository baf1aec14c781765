/**
 * `svc-connect/client` in a browser: the client SDK over an environment that the page provides. Tunnels fail with
 * NOT_IMPLEMENTED. This version has no environment over WebSocket and WebRTC.
 */

import type { Environment } from '../platform/environment.ts';
import { LocalError } from '../protocol/errors/index.ts';
import { SvcClient as Client, type ClientOptions, checkClientOptions } from './svc-client.ts';

export * from './exports.ts';

/** The client SDK in a browser. */
export class SvcClient extends Client {
  /**
   * Creates a client over the environment that the page provides.
   * @throws LocalError INVALID_ARGUMENT for an option of a wrong type, an unknown one, or without an environment
   */
  static create(given: { environment: Environment } & ClientOptions): SvcClient {
    checkClientOptions(given ?? {});
    const { environment, ...options } = given ?? {};
    if (environment === undefined)
      throw new LocalError(
        'INVALID_ARGUMENT',
        'a page has no environment of its own: call SvcClient.create({ environment }), see docs/sdk.md',
      );
    return new SvcClient({ environment }, options);
  }
}
