/**
 * The services found by the scanners of all links of a host: an instance heard on several links is one service with all
 * its addresses. Each listener gets a stream of changes.
 */
import { isLinkLocal, parseAddress } from '../address.ts';
import type { ScannedService } from './scanned-service.ts';

/** One instance of the service, on any links. */
export interface DiscoveredService {
  /** The Service Instance Name (RFC 6763 §4.1). */
  readonly name: string;
  /** The browsed names that list it, in lower case. */
  readonly listed: readonly string[];
  /** TXT items; null before they arrive. With several links, the newest. */
  readonly txt: readonly Uint8Array[] | null;
  /** Addresses with ports. A link-local IPv6 address carries the zone of its link (RFC 4007 §11). */
  readonly endpoints: readonly { readonly address: string; readonly port: number }[];
}

/** The link where a service was found. */
export interface FoundOn {
  readonly name: string;
  readonly zone?: string;
}

interface Found {
  readonly name: string;
  readonly links: Map<string, { readonly zone: string | undefined; readonly service: ScannedService }>;
}

/** The services found so far. */
export class FoundServices {
  readonly #found = new Map<string, Found>();

  /** Sets the state of an instance on a link; null when it is gone there. */
  set(link: FoundOn, name: string, service: ScannedService | null): void {
    const key = name.toLowerCase();
    const found = this.#found.get(key) ?? { name, links: new Map() };
    if (service === null) found.links.delete(link.name);
    else found.links.set(link.name, { zone: link.zone, service });
    if (found.links.size === 0) this.#found.delete(key);
    else this.#found.set(key, found);
  }

  /** Removes a link and everything found on it only. @returns the names of the services found there */
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

/** A change of a service. */
export interface ServiceChange {
  readonly action: 'ADD' | 'UPDATE' | 'REMOVE';
  /** For REMOVE, the service as it was. */
  readonly service: DiscoveredService;
}

/** The changes for one listener. */
export class ServiceStream {
  readonly #selects: (service: DiscoveredService) => boolean;
  readonly #reported = new Map<string, { readonly service: DiscoveredService; readonly signature: string }>();

  /** @param selects which services this listener wants */
  constructor(selects: (service: DiscoveredService) => boolean) {
    this.#selects = selects;
  }

  /**
   * Returns the change to report for the service of that name, now given or null; returns null when nothing changed.
   */
  update(name: string, now: DiscoveredService | null): ServiceChange | null {
    const key = name.toLowerCase();
    const reported = this.#reported.get(key);
    const service = now !== null && this.#selects(now) ? now : null;
    if (service === null) {
      this.#reported.delete(key);
      return reported === undefined ? null : { action: 'REMOVE', service: reported.service };
    }
    const signature = signatureOf(service);
    if (signature === reported?.signature) return null;
    this.#reported.set(key, { service, signature });
    return { action: reported === undefined ? 'ADD' : 'UPDATE', service };
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
  const bytes = parseAddress(address);
  return zone !== undefined && bytes?.length === 16 && isLinkLocal(bytes) ? `${address}%${zone}` : address;
}

/** Ignores which names list the service and the order of the addresses: neither matters to a listener. */
function signatureOf({ txt, endpoints }: DiscoveredService): string {
  const addresses = endpoints.map(({ address, port }) => `${address} ${port}`).sort();
  return `${txt?.map((item) => item.join()).join(';')} ${addresses.join()}`;
}
