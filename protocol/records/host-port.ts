/** `host:port` in records: a name or a numeric address, IPv6 in brackets (RFC 3986 §3.2.2). */

/** Maximum bytes of `host:port`. */
export const MAX_HOST_PORT = 255;

const FORM = /^(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?):([1-9][0-9]{0,4})$/;

/** Returns `host:port`, with an IPv6 address in brackets. @param host name or numeric address, without brackets */
export function formatHostPort({ host, port }: { readonly host: string; readonly port: number }): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/** Returns true for `host:port` with a port from 1 to 65535, at most 255 bytes. */
export function isHostPort(text: string): boolean {
  return text.length <= MAX_HOST_PORT && Number(FORM.exec(text)?.[1] ?? 0) <= 65535 && FORM.test(text);
}
