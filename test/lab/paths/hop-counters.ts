/** Counts UDP by hop limit and length where it arrives at a router, before the router decrements its hop limit. */
import type { Namespace } from '../namespaces.ts';

const SIZE = 4_096;

export interface Seen {
  /** IPv4 TTL, IPv6 hop limit. */
  readonly hops: number;
  /** Bytes of payload. */
  readonly bytes: number;
  readonly packets: number;
}

/** Starts counting at a router: packets from the interface, and packets from elsewhere. @param from an interface */
export function countHops(router: Namespace, from: string): void {
  const tables = [
    ['ip', 'ip ttl'],
    ['ip6', 'ip6 hoplimit'],
  ] as const;
  for (const [family, hops] of tables) {
    const sets = ['from', 'others'].map(
      (name) => `set ${name} {
      typeof ${hops} . udp length
      flags dynamic
      size ${SIZE}
      counter
    }`,
    );
    router.nft(`table ${family} hops {
      ${sets.join('\n')}
      chain arrive {
        type filter hook prerouting priority -300
        meta l4proto udp iifname "${from}" add @from { ${hops} . udp length counter }
        meta l4proto udp iifname != "${from}" add @others { ${hops} . udp length counter }
      }
    }`);
  }
}

/** The packets since the start, in both families. */
export function hopsSeen(router: Namespace, name: 'from' | 'others'): Seen[] {
  return ['ip', 'ip6'].flatMap((family) => {
    const { nftables } = JSON.parse(router.run('nft', '-j', 'list', 'set', family, 'hops', name)) as {
      nftables: { set?: { elem?: Element[] } }[];
    };
    return nftables
      .flatMap(({ set }) => set?.elem ?? [])
      .map(({ elem }) => {
        const [hops, length] = elem.val.concat;
        return { hops, bytes: length - UDP_HEADER, packets: elem.counter.packets };
      });
  });
}

const UDP_HEADER = 8;

interface Element {
  readonly elem: {
    readonly val: { readonly concat: readonly [hops: number, length: number] };
    readonly counter: { readonly packets: number };
  };
}
