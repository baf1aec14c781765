/**
 * The URL of a base station as people write it: `https://host[:port]` and nothing else, since nothing else would have
 * an effect; and the URL of a WebSocket to it.
 */

/** The parts of the URL. */
export interface ServerAddress {
  /** Name or numeric address, IPv6 without brackets. */
  readonly host: string;
  /** 1 to 65535; null where the URL names none: then {@link DEFAULT_SERVER_PORT} applies. */
  readonly port: number | null;
  /** The URL in its canonical form, always with its port: `https://host:port`. */
  readonly origin: string;
}

/** Port of a base station whose URL names none: the default of `svc basestation`. */
export const DEFAULT_SERVER_PORT = 4433;
/** The default port of https. A parsed URL drops it, so the text shows whether the URL named it. */
const HTTPS_PORT = 443;

/** Parses a URL. Null for anything but `https://host` and `https://host:port`, with or without a trailing slash. */
export function parseServerUrl(text: string): ServerAddress | null {
  if (!URL.canParse(text)) return null;
  const { protocol, hostname, port: kept, pathname, username, password, search, hash } = new URL(text);
  const rest = username + password + search + hash;
  if (protocol !== 'https:' || hostname === '' || pathname !== '/' || rest !== '' || kept === '0') return null;
  const port = kept !== '' ? Number(kept) : namesHttpsPort(text) ? HTTPS_PORT : null;
  return { host: hostname.replace(/^\[|\]$/g, ''), port, origin: `https://${hostname}:${port ?? DEFAULT_SERVER_PORT}` };
}

/** A parsed URL of http keeps that port. */
function namesHttpsPort(text: string): boolean {
  return new URL(text.trimStart().replace(/^https/i, 'http')).port === String(HTTPS_PORT);
}

/**
 * Returns the URL of a WebSocket in its canonical form; null for anything but `wss://` or `ws://` with a host and an
 * optional path. Credentials, queries and fragments are refused: they would prove nothing, and proxies see them.
 */
export function parseWebSocketUrl(text: string): string | null {
  if (!URL.canParse(text)) return null;
  const { protocol, hostname, port, username, password, search, hash, href } = new URL(text);
  const isPlain = username + password + search + hash === '' && !/[?#]/.test(text);
  return /^wss?:$/.test(protocol) && hostname !== '' && port !== '0' && isPlain ? href : null;
}
