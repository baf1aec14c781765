/**
 * The URL of a base station as people give it: `https://host[:port]` and nothing else, since nothing else would have an effect; and that of a WebSocket to it.
 */

/** What it names. */
export interface ServerAddress {
  /** Name or numeric address, IPv6 without brackets. */
  readonly host: string;
  /** 1 to 65535; null where the URL names none: then it is {@link DEFAULT_SERVER_PORT}. */
  readonly port: number | null;
  /** The URL in its usual form, always with its port: `https://host:port`. */
  readonly origin: string;
}

/** Port of a base station whose URL names none: that of `svc basestation`. */
export const DEFAULT_SERVER_PORT = 4433;
/** That of https. A parsed URL drops it, so a URL that names it has to be told from one without a port. */
const HTTPS_PORT = 443;

/** Null for anything but `https://host` and `https://host:port`, with a slash at the end or without. */
export function parseServerUrl(text: string): ServerAddress | null {
  if (!URL.canParse(text)) return null;
  const { protocol, hostname, port: kept, pathname, username, password, search, hash } = new URL(text);
  const rest = username + password + search + hash;
  if (protocol !== 'https:' || hostname === '' || pathname !== '/' || rest !== '' || kept === '0') return null;
  const port = kept !== '' ? Number(kept) : namesHttpsPort(text) ? HTTPS_PORT : null;
  return { host: hostname.replace(/^\[|\]$/g, ''), port, origin: originOf(hostname, port ?? DEFAULT_SERVER_PORT) };
}

/**
 * A URL of a base station that was kept on a disk, with its port. Earlier versions kept it without the port of https, which was their default; today's keep
 * each URL with its port.
 * @returns the text itself where it is no such URL
 */
export function keptServerUrl(text: string): string {
  const address = parseServerUrl(text);
  if (address === null) return text;
  return address.port === null ? originOf(new URL(text).hostname, HTTPS_PORT) : address.origin;
}

/** In a URL of http that port is not dropped. */
function namesHttpsPort(text: string): boolean {
  return new URL(text.trimStart().replace(/^https/i, 'http')).port === String(HTTPS_PORT);
}

/** @param hostname an IPv6 address in brackets */
function originOf(hostname: string, port: number): string {
  return `https://${hostname}:${port}`;
}

/**
 * A URL of a WebSocket in its usual form; null for anything but `wss://` or `ws://` with a host, a path or none. What could be a secret is refused: it would
 * prove nothing, and is seen by proxies.
 */
export function parseWebSocketUrl(text: string): string | null {
  if (!URL.canParse(text)) return null;
  const { protocol, hostname, port, username, password, search, hash, href } = new URL(text);
  const isPlain = username + password + search + hash === '' && !/[?#]/.test(text);
  return /^wss?:$/.test(protocol) && hostname !== '' && port !== '0' && isPlain ? href : null;
}
