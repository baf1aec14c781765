/**
 * `svc-connect/client` in a browser: the client SDK over an environment that the page provides. Tunnels fail with
 * NOT_IMPLEMENTED. This version has no environment over WebSocket and WebRTC.
 */
import type { Environment } from '../transport/environment.ts';
import { SvcClient as Client, type ClientOptions } from './svc-client.ts';

export * from './exports.ts';

/** The client SDK in a browser. */
export class SvcClient extends Client {
  static create({ environment, ...options }: { environment: Environment } & ClientOptions): SvcClient {
    return new SvcClient({ environment }, options);
  }
}
