/** A service as found on one link: its records combined. */
import type { DnsRecord } from './records.ts';
import type { Instance } from './scan-cache.ts';

/** One instance of the service on one link. It has at least a port and an address. */
export interface ScannedService {
  /** The browsed names that list it, in lower case; none where it was only asked for by name. */
  readonly listed: readonly string[];
  /** TXT items, and when they were first heard; null before they arrive. */
  readonly txt: { readonly items: readonly Uint8Array[]; readonly since: number } | null;
  /** Ports with the addresses of their hosts. */
  readonly endpoints: readonly { readonly port: number; readonly address: string }[];
}

/**
 * Returns the service of the instance; null while port or address are missing, and when it is neither listed nor asked
 * for.
 */
export function serviceOf(instance: Instance): ScannedService | null {
  const listed = [...instance.listed.keys()].sort();
  const endpoints = endpointsOf(instance);
  if (endpoints.length === 0 || (listed.length === 0 && instance.wanted === null)) return null;
  const newest = instance.txt.newest();
  const txt = newest !== null && newest.record.type === 'TXT' ? { items: newest.record.data, since: newest.since } : null;
  return { listed, txt, endpoints };
}

/** Returns a text that is equal for equal services. */
export function signatureOf({ listed, txt, endpoints }: ScannedService): string {
  return JSON.stringify([listed, txt?.items.map((item) => [...item]), endpoints]);
}

/** The order does not depend on when each was heard, so that a repeat changes nothing. */
function endpointsOf({ srv, hosts }: Instance): { port: number; address: string }[] {
  const byName = new Map([...hosts].map((host) => [host.name.toLowerCase(), host]));
  return srv
    .records()
    .flatMap((record) => {
      if (record.type !== 'SRV') return [];
      const { port, priority, target } = record.data;
      const host = byName.get(target.toLowerCase());
      const addresses = host === undefined ? [] : [...host.a.records(), ...host.aaaa.records()].flatMap(addressOf);
      return addresses.map((address) => ({ port, address, order: `${String(priority).padStart(5, '0')} ${port} ${address}` }));
    })
    .sort((one, other) => (one.order < other.order ? -1 : 1))
    .map(({ port, address }) => ({ port, address }));
}

function addressOf(record: DnsRecord): string[] {
  return record.type === 'A' || record.type === 'AAAA' ? [record.data] : [];
}
