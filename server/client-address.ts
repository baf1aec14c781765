/**
 * The client address of a request: that of the TCP peer, or the one named by proxies that the operator trusts.
 *
 * Only one header is read, X-Forwarded-For or Forwarded (RFC 7239), because a proxy that sets one passes on what its
 * client wrote in the other. The header is parsed from the right, where the nearest proxy appends, up to the
 * first address that is not a trusted proxy's: anything left of it may be forged.
 */
import type { IncomingHttpHeaders } from 'node:http';
import type { Log } from '../platform/environment.ts';
import { canonicalAddress } from '../protocol/address.ts';
import { ipAllowed } from './administration/ip-list.ts';

/** Which header trusted proxies set. */
export type ProxyHeader = 'x-forwarded-for' | 'forwarded';
export const proxyHeaders: readonly ProxyHeader[] = ['x-forwarded-for', 'forwarded'];

/** The parts of a request that matter here. */
export interface AddressedRequest {
  readonly headers: IncomingHttpHeaders;
  readonly socket: { readonly remoteAddress?: string | undefined };
}

export interface ClientAddressOptions {
  /** Addresses or prefixes of proxies. */
  readonly trusted: readonly string[];
  readonly header: ProxyHeader;
  readonly log: Pick<Log, 'warn'>;
}

/** Most characters of an element of Forwarded. */
const MAX_ELEMENT = 256;

export class ClientAddresses {
  readonly #options: ClientAddressOptions;
  #hasWarned = false;

  constructor(options: ClientAddressOptions) {
    this.#options = options;
  }

  /**
   * Returns a canonical address; empty if even the peer's is unknown. If a trusted proxy names anything but an address,
   * the proxy's own address counts.
   */
  of({ headers, socket: { remoteAddress = '' } }: AddressedRequest): string {
    const peer = canonicalAddress(remoteAddress) ?? '';
    if (!this.isTrusted(peer)) {
      if (headers['x-forwarded-for'] !== undefined || headers.forwarded !== undefined) this.#warn(peer);
      return peer;
    }
    let client = peer;
    for (const hop of this.#hops(headers).reverse()) {
      if (hop === null) return peer;
      client = hop;
      if (!this.isTrusted(hop)) break;
    }
    return client;
  }

  /** Returns whether the operator has named the address as a proxy's. */
  isTrusted(address: string): boolean {
    const { trusted } = this.#options;
    return trusted.length > 0 && ipAllowed(trusted, address);
  }

  /** Returns the addresses in the order of the header; null for anything but an address. */
  #hops(headers: IncomingHttpHeaders): (string | null)[] {
    const value = headers[this.#options.header];
    if (value === undefined) return [];
    // Several lines are one list (RFC 9110 §5.3).
    const text = Array.isArray(value) ? value.join(',') : value;
    if (this.#options.header === 'x-forwarded-for') return text.split(',').map(addressOf);
    // Broken quotes give one element without an address: the client's part might otherwise extend into the proxy's.
    return (splitUnquoted(text, ',') ?? ['']).map((element) => addressOf(forOf(element)));
  }

  #warn(peer: string): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    this.#options.log.warn(
      'an untrusted proxy names its clients: they all share the limits of its address; trust it with --trusted-proxy',
      {
        proxy: peer,
      },
    );
  }
}

/**
 * Parses `192.0.2.1`, `192.0.2.1:4711`, `2001:db8::1` or `[2001:db8::1]:4711`; null for anything else, such as
 * `unknown` or `_hidden` (RFC 7239 §6).
 */
function addressOf(text: string): string | null {
  const [, bracketed, v4, v6] = /^\s*(?:\[([^\]%]+)\](?::\d{1,5})?|([\d.]+)(?::\d{1,5})?|([\da-fA-F:.]+))\s*$/.exec(text) ?? [];
  return canonicalAddress(bracketed ?? v4 ?? v6 ?? '');
}

/**
 * Splits a value of Forwarded (RFC 7239 §4) outside of quoted strings, in linear time. Null if a quoted string has no
 * end or does not follow a `=`: otherwise a forged quote could swap the inside and the outside of a proxy's well-formed
 * element.
 */
function splitUnquoted(text: string, separator: string): string[] | null {
  const parts: string[] = [];
  let start = 0;
  let isQuoted = false;
  for (let i = 0; i < text.length; i++) {
    const character = text[i]!;
    if (isQuoted && character === '\\') i++;
    else if (character === '"') {
      if (!isQuoted && text[i - 1] !== '=') return null;
      isQuoted = !isQuoted;
    } else if (!isQuoted && character === separator) {
      parts.push(text.slice(start, i));
      start = i + 1;
    }
  }
  return isQuoted ? null : [...parts, text.slice(start)];
}

/**
 * Returns the value of the parameter `for`; empty for an element without one, with two, or of more than MAX_ELEMENT
 * characters.
 */
function forOf(element: string): string {
  if (element.length > MAX_ELEMENT) return '';
  const values = (splitUnquoted(element, ';') ?? []).flatMap((parameter) => {
    const equals = parameter.indexOf('=');
    return parameter.slice(0, Math.max(equals, 0)).trim().toLowerCase() === 'for' ? [parameter.slice(equals + 1).trim()] : [];
  });
  const [value = ''] = values.length === 1 ? values : [];
  return value.length > 1 && value.startsWith('"') && value.endsWith('"') ? value.slice(1, -1).replace(/\\(.)/g, '$1') : value;
}
