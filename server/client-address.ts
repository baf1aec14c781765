/**
 * From which address a request comes: that of the TCP peer, or behind proxies that an operator trusts the one that they name.
 *
 * One header is read and no other, as a proxy that sets one passes on what its client wrote into another: X-Forwarded-For, or Forwarded (RFC 7239). It is read
 * from the right, where the nearest proxy has written, up to the first address that is no trusted proxy's: what stands left of it anybody may have written.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { canonicalAddress } from '../transport/address.ts';
import type { Log } from '../transport/environment.ts';
import { ipAllowed } from './administration/ip-list.ts';

/** Which header trusted proxies set. */
export type ProxyHeader = 'x-forwarded-for' | 'forwarded';

/** What of a request is looked at. */
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

/** Characters of an element of Forwarded. */
const MAX_ELEMENT = 256;

export class ClientAddresses {
  readonly #options: ClientAddressOptions;
  #hasWarned = false;

  constructor(options: ClientAddressOptions) {
    this.#options = options;
  }

  /** Canonical; empty where even the peer's is unknown. What a trusted proxy says that is no address counts as the proxy's own. */
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

  /** Whether an operator has named the address as a proxy's. */
  isTrusted(address: string): boolean {
    const { trusted } = this.#options;
    return trusted.length > 0 && ipAllowed(trusted, address);
  }

  /** As the header lists them; null for one that is no address. */
  #hops(headers: IncomingHttpHeaders): (string | null)[] {
    const value = headers[this.#options.header];
    if (value === undefined) return [];
    // Several lines are one list (RFC 9110 §5.3).
    const text = Array.isArray(value) ? value.join(',') : value;
    if (this.#options.header === 'x-forwarded-for') return text.split(',').map(addressOf);
    return elementsOf(text).map((element) => addressOf(forOf(element)));
  }

  #warn(peer: string): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    this.#options.log.warn(
      'a proxy that is not trusted names its clients: they all share the places of its address; name it with --trusted-proxy',
      {
        proxy: peer,
      },
    );
  }
}

/** `192.0.2.1`, `192.0.2.1:4711`, `2001:db8::1` or `[2001:db8::1]:4711`; null for anything else, as `unknown` or `_hidden` (RFC 7239 §6). */
function addressOf(text: string): string | null {
  const [, bracketed, v4, v6] = /^\s*(?:\[([^\]%]+)\](?::\d{1,5})?|([\d.]+)(?::\d{1,5})?|([\da-fA-F:.]+))\s*$/.exec(text) ?? [];
  return canonicalAddress(bracketed ?? v4 ?? v6 ?? '');
}

/** The elements of Forwarded (RFC 7239 §4). One that is no address where quotes are out of order: what a client wrote might reach into what a proxy did. */
function elementsOf(text: string): string[] {
  return splitUnquoted(text, ',') ?? [''];
}

/**
 * Splits at what stands in no quoted string, in linear time; null where a quoted string has no end or does not follow a `=`. Then a proxy's well-formed element
 * is never read as if its quoted strings were outside and the rest within.
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

/** The value of the parameter `for`; empty for an element without one, with two, or of more than MAX_ELEMENT characters. */
function forOf(element: string): string {
  if (element.length > MAX_ELEMENT) return '';
  const values = (splitUnquoted(element, ';') ?? []).flatMap((parameter) => {
    const equals = parameter.indexOf('=');
    return parameter.slice(0, Math.max(equals, 0)).trim().toLowerCase() === 'for' ? [parameter.slice(equals + 1).trim()] : [];
  });
  const [value = ''] = values.length === 1 ? values : [];
  return value.length > 1 && value.startsWith('"') && value.endsWith('"') ? value.slice(1, -1).replace(/\\(.)/g, '$1') : value;
}
