/**
 * The URL of a base station as people give it: `https://host[:port]` and nothing else, since nothing else would have an effect; and that of a WebSocket to it.
 */

/** What it names. */
export interface ServerAddress {
  /** Name or numeric address, IPv6 without brackets. */
  readonly host: string;
  /** 1 to 65535; null where the URL names none, or that of https, which a URL leaves out. */
  readonly port: number | null;
  /** The URL in its usual form. */
  readonly origin: string;
}

/** Null for anything but `https://host` and `https://host:port`, with a slash at the end or without. */
export function parseServerUrl(text: string): ServerAddress | null {
  if (!URL.canParse(text)) return null;
  const { protocol, hostname, port, origin, pathname, username, password, search, hash } = new URL(text);
  const rest = username + password + search + hash;
  if (protocol !== 'https:' || hostname === '' || pathname !== '/' || rest !== '' || port === '0') return null;
  return { host: hostname.replace(/^\[|\]$/g, ''), port: port === '' ? null : Number(port), origin };
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
