/**
 * The default routes of Linux, from `/proc/net/route` and `/proc/net/ipv6_route` (its main table). Each needs one read
 * of a short file.
 */
import { endianness } from 'node:os';
import { formatAddress, isLinkLocal } from '../../protocol/address.ts';

export interface DefaultRoute {
  readonly interface: string;
  /** Numeric, a link-local IPv6 address with its zone; null for a link without a router, such as PPP. */
  readonly gateway: string | null;
  /** The system uses the route with the lowest metric. */
  readonly metric: number;
}

/** Flags of a route (`<linux/route.h>`). */
const RTF_UP = 0x1;
const RTF_REJECT = 0x200;

const WORD = /^[0-9a-f]{8}$/i;
const ADDRESS = /^[0-9a-f]{32}$/i;
const NOWHERE = '0'.repeat(32);

/** Columns of `/proc/net/route`: 32-bit numbers in the machine's byte order, as text. */
const V4 = { INTERFACE: 0, DESTINATION: 1, GATEWAY: 2, FLAGS: 3, METRIC: 6, MASK: 7 } as const;
/**
 * Columns of `/proc/net/ipv6_route`: destination and its prefix length, source and its prefix length, next hop, metric,
 * counters, flags, interface.
 */
const V6 = { DESTINATION: 0, LENGTH: 1, SOURCE_LENGTH: 3, GATEWAY: 4, METRIC: 5, FLAGS: 8, INTERFACE: 9 } as const;

/** Returns the default routes of IPv4, the one in use first. Skips lines of another format. */
export function ipv4DefaultRoutes(text: string, order: 'LE' | 'BE' = endianness()): DefaultRoute[] {
  const routes = rowsOf(text).flatMap((row) => {
    const gateway = row[V4.GATEWAY] ?? '';
    const isDefault = Number.parseInt(row[V4.DESTINATION] ?? '1', 16) === 0 && Number.parseInt(row[V4.MASK] ?? '1', 16) === 0;
    if (!isDefault || !WORD.test(gateway) || !isUsable(row[V4.FLAGS])) return [];
    const bytes = Uint8Array.from(Buffer.from(gateway, 'hex'));
    if (order === 'LE') bytes.reverse();
    return [route(row[V4.INTERFACE]!, bytes, Number.parseInt(row[V4.METRIC]!, 10))];
  });
  return routes.sort(byMetric);
}

/** Returns the default routes of IPv6, the one in use first. Skips lines of another format. */
export function ipv6DefaultRoutes(text: string): DefaultRoute[] {
  const routes = rowsOf(text).flatMap((row) => {
    const [name = '', gateway = ''] = [row[V6.INTERFACE], row[V6.GATEWAY]];
    const isDefault = row[V6.DESTINATION] === NOWHERE && row[V6.LENGTH] === '00' && row[V6.SOURCE_LENGTH] === '00';
    // "Unreachable" is a default route of the loopback interface.
    if (!isDefault || name === '' || name === 'lo' || !ADDRESS.test(gateway) || !isUsable(row[V6.FLAGS])) return [];
    return [route(name, Uint8Array.from(Buffer.from(gateway, 'hex')), Number.parseInt(row[V6.METRIC]!, 16))];
  });
  return routes.sort(byMetric);
}

function rowsOf(text: string): string[][] {
  return text.split('\n').map((line) => line.trim().split(/\s+/));
}

function isUsable(flags: string | undefined): boolean {
  const bits = Number.parseInt(flags ?? '0', 16);
  return (bits & RTF_UP) !== 0 && (bits & RTF_REJECT) === 0;
}

function route(name: string, gateway: Uint8Array, metric: number): DefaultRoute {
  const zone = gateway.length === 16 && isLinkLocal(gateway) ? `%${name}` : '';
  const isNone = gateway.every((byte) => byte === 0);
  return { interface: name, gateway: isNone ? null : formatAddress(gateway) + zone, metric: metric || 0 };
}

function byMetric(a: DefaultRoute, b: DefaultRoute): number {
  return a.metric - b.metric;
}
