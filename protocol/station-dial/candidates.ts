/** Where a base station may take a WebSocket, in the order in which that is tried (PROTOCOL.md §7). */
import { RemoteError, type SvcError } from '../errors/index.ts';

/** PROTOCOL.md §2. */
export const WEBSOCKET_PATH = '/svc/v1';

/** Which WebSocket a person wants. */
export interface WebSocketChoice {
  /** `wss://` or `ws://`; the only one that is tried. Undefined: those that follow from host and port. */
  readonly url?: string;
  /** A certificate must be valid, so nothing without TLS is tried. Default false. */
  readonly verifyCertificate?: boolean;
}

/** @param host name or numeric address, without brackets @param port of the station's URL */
export function webSocketUrls(host: string, port: number, { url, verifyCertificate = false }: WebSocketChoice): readonly string[] {
  if (url !== undefined) return [url];
  const rest = `${host.includes(':') ? `[${host}]` : host}:${port}${WEBSOCKET_PATH}`;
  return verifyCertificate ? [`wss://${rest}`] : [`wss://${rest}`, `ws://${rest}`];
}

/** The answer is HTTP, and no upgrade: something speaks TLS there, or none was asked for. */
export class NoUpgradeError extends RemoteError {
  override name = 'NoUpgradeError';
  /** Of the answer (RFC 9110 §15). */
  readonly status: number;

  constructor(status: number, message: string) {
    super('BAD_RESPONSE', message);
    this.status = status;
  }
}

/** Whether the next one is worth a try: something answered and is not what was expected, as a server that speaks no TLS does. */
export function triesNext(error: SvcError): boolean {
  return error.code === 'BAD_RESPONSE' && !(error instanceof NoUpgradeError);
}
