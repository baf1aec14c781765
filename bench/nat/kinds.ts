/** The kinds of NAT in the matrix of direct paths, and a host behind each. */
import type { NatBox, NatOptions, SimulatedHost, Simulation } from '../../testing/index.ts';

/** Names of the matrix's rows and columns. */
export const natKinds = ['open', 'full-cone', 'address', 'port', 'sequential', 'random', 'double', 'v6-firewall', 'blocked'] as const;
export type NatKind = (typeof natKinds)[number];

type Behaviour = Omit<NatOptions, 'outside' | 'behind'>;

const PORT: Behaviour = { mapping: 'independent', filter: 'address-port', ports: 'preserve' };
const HARD: Behaviour = { mapping: 'address-port', filter: 'address-port' };

/** Behaviour of the box in front of a home of a kind; null without a box. Both boxes of `double` behave the same. */
export const natBehaviours: Readonly<Record<NatKind, Behaviour | null>> = {
  open: null,
  'full-cone': { ...PORT, filter: 'none' },
  address: { ...PORT, filter: 'address' },
  port: PORT,
  sequential: { ...HARD, ports: 'sequential' },
  random: { ...HARD, ports: 'random' },
  double: PORT,
  'v6-firewall': { ...PORT, v6: 'firewall' },
  blocked: { ...PORT, blocked: true },
};

/**
 * Routers between a box and the core, and between the inner and the outer box of `double`: a hop limit of 4 passes both
 * boxes.
 */
const HOPS = 3;
const INNER_HOPS = 1;
/** A host without a box is as far away as a host with one. */
const OPEN_HOPS = 1 + HOPS;
/** The same in every home, as in reality. */
const INSIDE = '192.168.1.5';
const GATEWAY = '192.168.1.1';

/** A host, with the boxes in front of it. */
export interface Home {
  readonly kind: NatKind;
  readonly host: SimulatedHost;
  /** In order from the host to the core; empty for `open`. */
  readonly boxes: readonly NatBox[];
  /** The IPv4 address that the core sees. */
  readonly outside: string;
}

export interface HomeOptions extends Partial<Behaviour> {
  /**
   * Addresses that UDP reaches although it is blocked. Default: those of the host `station`, which must already exist.
   */
  readonly allow?: readonly string[];
}

/**
 * Creates a host behind a box of a kind.
 * @param number of the home, 1 to 16,000: determines the outside addresses
 * @param options of the box, which replace those of the kind; for `double`, those of both boxes
 */
export function homeOf(simulation: Simulation, kind: NatKind, name: string, number: number, options: HomeOptions = {}): Home {
  const outside = `198.51.${100 + (number >> 8)}.${number & 0xff}`;
  const behaviour = natBehaviours[kind];
  if (behaviour === null)
    return { kind, host: simulation.host(name, { addresses: [`${outside}/32`], hops: OPEN_HOPS }), boxes: [], outside };
  const allow = options.allow ?? (kind === 'blocked' ? simulation.addressesOf('station') : []);
  const common: Behaviour = { hops: HOPS, ...behaviour, ...options, allow };
  if (kind !== 'double') return behind(simulation, kind, name, number, { ...common, outside: [outside] });
  const provider = simulation.nat(`${name}'s provider`, { ...common, outside: [outside], inside: ['100.64.0.1'] });
  const home = behind(simulation, kind, name, number, { ...common, outside: ['100.64.0.2'], behind: provider, hops: INNER_HOPS });
  return { ...home, boxes: [...home.boxes, provider], outside };
}

function behind(simulation: Simulation, kind: NatKind, name: string, number: number, options: NatOptions): Home {
  const hasV6 = options.v6 !== undefined && options.v6 !== 'none';
  const prefix = `2001:db8:${number.toString(16)}:`;
  const outside = hasV6 ? [...options.outside, `${prefix}:/48`] : options.outside;
  const box = simulation.nat(`${name}'s box`, { inside: [GATEWAY], ...options, outside });
  const addresses = [`${INSIDE}/24`, ...(hasV6 ? [`${prefix}:5/64`] : [])];
  const host = simulation.host(name, { addresses, behind: box });
  return { kind, host, boxes: [box], outside: options.outside[0]! };
}
