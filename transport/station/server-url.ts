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
  return { host: hostname.replace(/^\[|\]$/g, ''), port, origin: originOf(hostname, port ?? DEFAULT_SERVER_PORT) };
}

/**
 * Returns a URL of a base station as stored on a disk, with its port. Earlier versions stored it without the port of
 * https, which was their default; today each URL is stored with its port.
 * @returns the text itself where it is no such URL
 */
export function keptServerUrl(text: string): string {
  const address = parseServerUrl(text);
  if (address === null) return text;
  return address.port === null ? originOf(new URL(text).hostname, HTTPS_PORT) : address.origin;
}

/** A parsed URL of http keeps that port. */
function namesHttpsPort(text: string): boolean {
  return new URL(text.trimStart().replace(/^https/i, 'http')).port === String(HTTPS_PORT);
}

/** @param hostname an IPv6 address in brackets */
function originOf(hostname: string, port: number): string {
  return `https://${hostname}:${port}`;
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
