/**
 * The services that the scanners of all links of a host have found: an instance heard on several links is one service with all its addresses. And for each
 * listener a stream of what changes.
 */
import { parseAddress } from '../address.ts';
import type { ScannedService } from './scanned-service.ts';

/** One instance of the service, on whatever links. */
export interface DiscoveredService {
  /** The Service Instance Name (RFC 6763 §4.1). */
  readonly name: string;
  /** The browsed names that list it, in lower case. */
  readonly listed: readonly string[];
  /** TXT items; null before they came. Of several links', the newest. */
  readonly txt: readonly Uint8Array[] | null;
  /** Addresses with ports. An IPv6 address that counts on one link alone has that link's zone (RFC 4007 §11). */
  readonly endpoints: readonly { readonly address: string; readonly port: number }[];
}

/** Where a service was found. */
export interface FoundOn {
  readonly name: string;
  readonly zone?: string;
}

interface Found {
  readonly name: string;
  readonly links: Map<string, { readonly zone: string | undefined; readonly service: ScannedService }>;
}

/** What is found by now. */
export class FoundServices {
  readonly #found = new Map<string, Found>();

  /** What a link says of an instance, null that it is not there any more. */
  set(link: FoundOn, name: string, service: ScannedService | null): void {
    const key = name.toLowerCase();
    const found = this.#found.get(key) ?? { name, links: new Map() };
    if (service === null) found.links.delete(link.name);
    else found.links.set(link.name, { zone: link.zone, service });
    if (found.links.size === 0) this.#found.delete(key);
    else this.#found.set(key, found);
  }

  /** A link is gone, with all that was found on it alone. @returns the names of what was found there */
  removeLink(link: string): string[] {
    const names = [...this.#found.values()].filter(({ links }) => links.has(link)).map(({ name }) => name);
    for (const name of names) this.set({ name: link }, name, null);
    return names;
  }

  get(name: string): DiscoveredService | null {
    const found = this.#found.get(name.toLowerCase());
    return found === undefined ? null : merged(found);
  }

  all(): DiscoveredService[] {
    return [...this.#found.values()].map(merged);
  }
}

/** What has become of a service. */
export interface ServiceChange {
  readonly action: 'ADD' | 'UPDATE' | 'REMOVE';
  /** Of REMOVE as it was. */
  readonly service: DiscoveredService;
}

/** What one listener is told. */
export class ServiceStream {
  readonly #selects: (service: DiscoveredService) => boolean;
  readonly #told = new Map<string, { readonly service: DiscoveredService; readonly signature: string }>();

  /** @param selects which services are for this listener */
  constructor(selects: (service: DiscoveredService) => boolean) {
    this.#selects = selects;
  }

  /** What the listener is to be told about the service of that name, as it is now or null; null when that is nothing new. */
  update(name: string, now: DiscoveredService | null): ServiceChange | null {
    const key = name.toLowerCase();
    const told = this.#told.get(key);
    const service = now !== null && this.#selects(now) ? now : null;
    if (service === null) {
      this.#told.delete(key);
      return told === undefined ? null : { action: 'REMOVE', service: told.service };
    }
    const signature = signatureOf(service);
    if (signature === told?.signature) return null;
    this.#told.set(key, { service, signature });
    return { action: told === undefined ? 'ADD' : 'UPDATE', service };
  }
}

function merged({ name, links }: Found): DiscoveredService {
  const all = [...links.values()];
  const endpoints = new Map(
    all.flatMap(({ zone, service }) =>
      service.endpoints.map((each) => {
        const endpoint = { ...each, address: withZone(each.address, zone) };
        return [`${endpoint.address} ${endpoint.port}`, endpoint] as const;
      }),
    ),
  );
  const texts = all.flatMap(({ service: { txt } }) => (txt === null ? [] : [txt]));
  const newest = texts.reduce<ScannedService['txt']>((best, each) => (best === null || each.since > best.since ? each : best), null);
  const listed = [...new Set(all.flatMap(({ service }) => service.listed))].sort();
  return { name, listed, txt: newest?.items ?? null, endpoints: [...endpoints.values()] };
}

function withZone(address: string, zone: string | undefined): string {
  return zone !== undefined && isScoped(address) ? `${address}%${zone}` : address;
}

/** Which names list it besides makes no difference to a listener, nor does the order of the addresses. */
function signatureOf({ txt, endpoints }: DiscoveredService): string {
  const places = endpoints.map(({ address, port }) => `${address} ${port}`).sort();
  return `${txt?.map((item) => item.join()).join(';')} ${places.join()}`;
}

/** fe80::/10 (RFC 4291 §2.5.6). */
function isScoped(address: string): boolean {
  const bytes = parseAddress(address);
  return bytes?.length === 16 && bytes[0] === 0xfe && (bytes[1]! & 0xc0) === 0x80;
}
