/** The URLs at which a base station may accept a WebSocket, in the order in which they are tried (PROTOCOL.md §7). */
import { RemoteError, type SvcError } from '../errors/index.ts';

/** Path of the WebSocket (PROTOCOL.md §2). */
export const WEBSOCKET_PATH = '/svc/v1';

/** The user's choice of WebSocket. */
export interface WebSocketChoice {
  /** `wss://` or `ws://`; the only one that is tried. Undefined: those derived from host and port. */
  readonly url?: string;
  /** Requires a valid certificate, so nothing without TLS is tried. Default false. */
  readonly verifyCertificate?: boolean;
}

/** @param host name or numeric address, without brackets @param port of the station's URL */
export function webSocketUrls(host: string, port: number, { url, verifyCertificate = false }: WebSocketChoice): readonly string[] {
  if (url !== undefined) return [url];
  const rest = `${host.includes(':') ? `[${host}]` : host}:${port}${WEBSOCKET_PATH}`;
  return verifyCertificate ? [`wss://${rest}`] : [`wss://${rest}`, `ws://${rest}`];
}

/** The answer is HTTP without an upgrade: the server there supports TLS, or none was used. */
export class NoUpgradeError extends RemoteError {
  override name = 'NoUpgradeError';
  /** Status of the answer (RFC 9110 §15). */
  readonly status: number;

  constructor(status: number, message: string) {
    super('BAD_RESPONSE', message);
    this.status = status;
  }
}

/** Returns whether to try the next URL: the answer was not as expected, such as that of a server without TLS. */
export function triesNext(error: SvcError): boolean {
  return error.code === 'BAD_RESPONSE' && !(error instanceof NoUpgradeError);
}
