/** Acceptance of WebSockets by a simulated host: without HTTP, only the decisions of an upgrade (RFC 6455 §4). */
import type { MessagePipe, WebSocketOptions } from '../platform/environment.ts';

/** Options of a listener for WebSockets. */
export interface WebSocketListenOptions {
  /** TCP port, 1 to 65535. TCP and UDP ports are independent. */
  readonly port: number;
  /** `wss:`; else `ws:`. Default false. */
  readonly secure?: boolean;
  /** Whether the certificate is valid for every name of the host; matters to openers that check it. Default true. */
  readonly validCertificate?: boolean;
  /** The subprotocol that must be offered. */
  readonly protocol: string;
  /** The only path, such as `/svc/v1`; others get 404. Default: every path. */
  readonly path?: string;
  /**
   * Called for each upgrade. Returns the handlers of the pipe, or the HTTP status that refuses it. The pipe may be used
   * immediately. Must not throw.
   */
  readonly accept: (pipe: MessagePipe, request: WebSocketRequest) => WebSocketHandlers | number;
}

/** The opener's request. */
export interface WebSocketRequest {
  /** With the query. */
  readonly path: string;
}

/** The same for the end that accepts. */
export type WebSocketHandlers = Pick<WebSocketOptions, 'receive' | 'closed'>;

/** An open TCP port. */
export interface WebSocketListener {
  readonly port: number;
  /** Stops accepting; open pipes stay. May be called again. */
  close(): void;
}

/** A URL of a WebSocket in parts. */
export interface WebSocketUrl {
  readonly secure: boolean;
  /** Name or numeric address, without brackets. */
  readonly host: string;
  readonly port: number;
  readonly path: string;
}

/** Parses a URL; null for anything but `ws://` or `wss://` with a host. A bare JavaScript context has no `URL`. */
export function parseWebSocketUrl(url: string): WebSocketUrl | null {
  const [, scheme, bracketed, name, port, path] = /^(wss?):\/\/(?:\[([^\]]+)\]|([^/:?#@]+))(?::(\d{1,5}))?(\/[^#]*)?$/.exec(url) ?? [];
  const host = bracketed ?? name;
  if (host === undefined || Number(port ?? 1) < 1 || Number(port ?? 1) > 65_535) return null;
  const secure = scheme === 'wss';
  return { secure, host, port: port === undefined ? (secure ? 443 : 80) : Number(port), path: path ?? '/' };
}
