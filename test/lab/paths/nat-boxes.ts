/**
 * NAT boxes of the lab as rules of nftables: what Linux routers do (`masquerade` and its relatives), and what others
 * do, built from sets, maps and DNAT. They assume a router with the interfaces `lan` and `wan`, one address outside,
 * and one host inside that uses UDP. `probe.mjs` checks each from outside.
 */

/**
 * As in the matrix: the kinds of the simulator, where `port` is Linux's masquerade, and one that only a real kernel
 * has.
 */
export const NAT_KINDS = [
  'open',
  'full-cone',
  'address',
  'port',
  'claiming',
  'sequential',
  'random',
  'double',
  'v6-firewall',
  'blocked',
] as const;

/**
 * - `open`: no NAT, no filter.
 * - `full-cone`: RFC 4787 independent mapping, independent filter.
 * - `address`: independent mapping, filter by address.
 * - `port`: masquerade behind a firewall: ports are kept, the filter is by address and port.
 * - `claiming`: masquerade without a firewall: the router accepts UDP from outside itself, and reserves the destination
 *   port for that peer.
 * - `sequential`: each flow gets the next port. `random`: any port. Both filter by address and port.
 * - `double`: `port` behind `port`.
 * - `v6-firewall`: `port` for IPv4, IPv6 through a stateful firewall.
 * - `blocked`: `port`, and UDP leaves for the base station alone.
 */
export type NatKind = (typeof NAT_KINDS)[number];

export interface BoxAddresses {
  /** Address of the router, on `wan`. */
  readonly outside: string;
  /** Address of the host that has the ports mapped to it. */
  readonly inside: string;
  /** Addresses of the base station. */
  readonly station: readonly string[];
}

/** First port of `sequential`, and the number of ports before it wraps. */
export const FIRST_PORT = 20_000;
const PORTS = 4_096;

/** Commands for `nft` that make the router a box of that kind; for `double` both routers. */
export function rulesOf(kind: NatKind, addresses: BoxAddresses): string {
  if (kind === 'open') return '';
  const { translate, admit } = TRANSLATIONS[kind]?.(addresses) ?? { translate: 'masquerade', admit: '' };
  return `table ip box {
    ${admit}
    chain source {
      type nat hook postrouting priority srcnat
      oifname "wan" meta l4proto udp ${translate}
      oifname "wan" masquerade
    }
    chain forward {
      type filter hook forward priority filter
      iifname "wan" ct state established,related accept
      iifname "wan" ct status dnat accept
      iifname "wan" drop
      ${kind === 'blocked' ? `meta l4proto udp ip daddr != { ${addresses.station.join(', ')} } drop` : ''}
    }
    ${kind === 'claiming' ? '' : FIREWALL}
  }
  ${kind === 'v6-firewall' ? FIREWALL_V6 : ''}`;
}

/** Before it is confirmed: a packet that is dropped here reserves nothing. */
const FIREWALL = `chain input {
      type filter hook input priority filter
      iifname "wan" ct state established,related accept
      iifname "wan" drop
    }`;

const FIREWALL_V6 = `table ip6 box {
    chain forward {
      type filter hook forward priority filter
      iifname "wan" ct state established,related accept
      iifname "wan" drop
    }
  }`;

interface Translation {
  /** Translation of the source of UDP. */
  readonly translate: string;
  /** Admission of more than answers. */
  readonly admit: string;
}

const TRANSLATIONS: Partial<Record<NatKind, (addresses: BoxAddresses) => Translation>> = {
  'full-cone': ({ inside }) => ({ translate: 'masquerade', admit: admitting('udp sport', 'inet_service', 'udp dport', inside) }),
  address: ({ inside }) => ({
    translate: 'masquerade',
    admit: admitting('ip daddr . udp sport', 'ipv4_addr . inet_service', 'ip saddr . udp dport', inside),
  }),
  sequential: ({ outside }) => ({ translate: `snat to ${outside} : numgen inc mod ${PORTS} map @ports`, admit: portMap() }),
  random: () => ({ translate: 'masquerade random,fully-random', admit: '' }),
};

/**
 * Outgoing packets are recorded in a set; matching incoming ones go to the same port of the host inside: masquerade
 * keeps the port of a single host.
 */
function admitting(noted: string, type: string, wanted: string, inside: string): string {
  return `set sent {
      type ${type}
      flags dynamic,timeout
      timeout 120s
      size 65535
    }
    chain note {
      type filter hook postrouting priority srcnat - 10
      oifname "wan" meta l4proto udp update @sent { ${noted} }
    }
    chain admit {
      type nat hook prerouting priority dstnat
      iifname "wan" meta l4proto udp ${wanted} @sent dnat to ${inside}
    }`;
}

function portMap(): string {
  const elements = Array.from({ length: PORTS }, (_, index) => `${index} : ${FIRST_PORT + index}`);
  return `map ports {
      typeof numgen inc mod ${PORTS} : udp dport
      elements = { ${elements.join(', ')} }
    }`;
}
