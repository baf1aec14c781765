/** The records that announce a device as a DNS-SD service (RFC 6763; PROTOCOL.md §11). */
import { formatAddress, parseAddress } from '../address.ts';
import { LocalError } from '../errors/index.ts';
import type { DnsRecord } from './records.ts';

/** Service type of all devices. */
export const SERVICE_TYPE = '_svc._udp.local';
/** The name under which a browser asks for the service types (RFC 6763 §9). */
export const SERVICE_TYPES = '_services._dns-sd._udp.local';

/** Seconds that caches keep a record. */
export const TTL = 120;

/** Maximum bytes of a DNS label (RFC 1035 §2.3.4). */
const MAX_LABEL = 63;

/** The announcement on one link. */
export interface DeviceService {
  /** `<productId>-<deviceId>`: instance, automatic subtype and host. */
  readonly name: string;
  /** UDP port of the device's local socket. */
  readonly port: number;
  readonly subtypes: readonly string[];
  readonly txt: readonly Uint8Array[];
  /** Numeric addresses of the interface. */
  readonly addresses: readonly string[];
}

/** Returns the name of the PTR records of a subtype (RFC 6763 §7.1). */
export function subtypeName(subtype: string): string {
  return `${subtype}._sub.${SERVICE_TYPE}`;
}

/**
 * Returns a valid subtype of the service.
 * @throws LocalError INVALID_ARGUMENT unless 1 to 63 bytes of printable ASCII without `.` and `\`
 */
export function checkSubtype(subtype: string): string {
  if (!isSubtype(subtype))
    throw new LocalError('INVALID_ARGUMENT', `an mDNS subtype is 1 to ${MAX_LABEL} printable characters without "." and "\\"`);
  return subtype;
}

/** Returns whether {@link checkSubtype} accepts it. */
export function isSubtype(subtype: unknown): boolean {
  return typeof subtype === 'string' && /^[\x21-\x2d\x2f-\x5b\x5d-\x7e]+$/.test(subtype) && subtype.length <= MAX_LABEL;
}

/** Returns all records of a device on a link. Those shared with other devices have no cache-flush bit. */
export function serviceRecords({ name, port, subtypes, txt, addresses }: DeviceService): DnsRecord[] {
  const instance = `${name}.${SERVICE_TYPE}`;
  const host = `${name}.local`;
  const shared = { ttl: TTL, flush: false, type: 'PTR' } as const;
  const own = { ttl: TTL, flush: true } as const;
  const hosts = addresses.flatMap((text) => addressRecord(host, text));
  const types = [...new Set(hosts.map(({ type }) => type))];
  return [
    { ...shared, name: SERVICE_TYPE, data: instance },
    ...[...new Set([name, ...subtypes])].map((subtype) => ({ ...shared, name: subtypeName(subtype), data: instance })),
    { ...shared, name: SERVICE_TYPES, data: SERVICE_TYPE },
    { ...own, name: instance, type: 'SRV', data: { priority: 0, weight: 0, port, target: host } },
    { ...own, name: instance, type: 'TXT', data: txt },
    ...hosts,
    // The unique names have no other types (RFC 6762 §6.1).
    { ...own, name: instance, type: 'NSEC', data: { nextDomain: instance, rrtypes: ['TXT', 'SRV'] } },
    { ...own, name: host, type: 'NSEC', data: { nextDomain: host, rrtypes: types } },
  ];
}

function addressRecord(name: string, text: string): DnsRecord[] {
  const bytes = parseAddress(text);
  if (bytes === null) return [];
  return [{ name, ttl: TTL, flush: true, type: bytes.length === 4 ? 'A' : 'AAAA', data: formatAddress(bytes) }];
}
