/**
 * Finds the STUN ports of a station: at the address of the channel, at one that it names, and at one of the other
 * family, where the station has a name and this host reaches that family. Without the last, an end whose channel uses
 * IPv6 would not learn what its IPv4 NAT does.
 *
 * A station may lie, and so may the resolver: an address that no host has, or only this one or its link, is skipped,
 * unless the station itself is there.
 */

import type { Environment } from '../../platform/environment.ts';
import { canonicalAddress } from '../../protocol/address.ts';
import type { SocketAddress } from '../../protocol/control/index.ts';
import { isPeerAddress } from './peer-address.ts';
import type { StationView } from './station-view.ts';

/** ms for the resolver: the address of the channel is known without it. */
const RESOLVE_TIME = 500;

/** @param isReachable returns whether this host reaches the family of an address */
export async function stunServers(
  { at, name, stun }: StationView,
  environment: Pick<Environment, 'clock' | 'network'>,
  isReachable: (address: string) => boolean,
): Promise<readonly SocketAddress[]> {
  const isHere = !isPeerAddress(at.address);
  const isAllowed = (address: string): boolean => isHere || isPeerAddress(address);
  const named = stun.map(({ address, port }) => ({ address: canonicalAddress(address ?? '') ?? at.address, port }));
  const servers = named.filter(({ address }) => isAllowed(address));
  const port = stun.find(({ address }) => address === undefined)?.port;
  if (name === null || port === undefined) return servers;
  const resolved = await withTimeout(RESOLVE_TIME, environment, environment.network.resolve(name));
  const isV6 = at.address.includes(':');
  const other = resolved.find((address) => address.includes(':') !== isV6 && isAllowed(address));
  return other === undefined || !isReachable(other) ? servers : [...servers, { address: other, port }];
}

/** Resolves to the addresses; to none when they take too long or there are none. */
function withTimeout(time: number, { clock }: Pick<Environment, 'clock'>, addresses: Promise<string[]>): Promise<readonly string[]> {
  return new Promise((resolve) => {
    const cancel = clock.schedule(time, () => resolve([]));
    addresses.then(resolve, () => resolve([])).finally(cancel);
  });
}
