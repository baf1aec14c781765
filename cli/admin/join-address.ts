/** The address at which a board reaches a base station, for join strings. */

import type { Network } from '../../platform/environment.ts';
import { reachableAddresses } from '../../platform/node/index.ts';
import { formatHostPort, isHostPort } from '../../protocol/records/index.ts';
import { DEFAULT_SERVER_PORT, parseServerUrl } from '../../runtime/station/index.ts';
import type { LastStart } from '../../server/administration/index.ts';
import { CommandError } from '../frame/errors.ts';
import { isWildcard } from '../frame/loopback.ts';

/** A base station as named by a join string. */
interface JoinAddress {
  /** `host:port`. */
  readonly server: string;
  /** Undefined where TLS authenticates it. */
  readonly serverFingerprint: string | undefined;
  /** One line on where the address comes from, unless the operator has stated it. */
  readonly note: string | undefined;
}

/** Documentation addresses (RFC 5737, RFC 3849): their route is the route to the internet. Nothing is sent. */
const FAR = ['192.0.2.1', '2001:db8::1'];
const LOOPBACK = '127.0.0.1';
const GIVE_ANOTHER = 'give another one with svc basestation --url https://host:port';

/**
 * @param start how the base station was last started
 * @throws CommandError for an address that cannot be reached from another machine
 */
export async function joinAddress(
  { url, host, port, fingerprint, tlsProves }: LastStart,
  network: Pick<Network, 'interfaces' | 'sourceAddress'>,
): Promise<JoinAddress> {
  const stated = url === null ? null : parseServerUrl(url);
  if (stated !== null) {
    const server = formatHostPort({ host: stated.host, port: stated.port ?? DEFAULT_SERVER_PORT });
    return { server, serverFingerprint: tlsProves ? undefined : fingerprint, note: undefined };
  }
  const isOne = host !== null && !isWildcard(host);
  const address = isOne ? host : await lanAddress(network);
  const server = formatHostPort({ host: address ?? LOOPBACK, port });
  // A zone, as in fe80::1%eth0, has a meaning on this machine only.
  if (!isHostPort(server)) throw new CommandError(`the address ${server} cannot be reached from another machine: ${GIVE_ANOTHER}`);
  const what =
    address === null ? 'on this machine only, which is in no network' : isOne ? 'the one of --host' : 'that of this machine in its network';
  return { server, serverFingerprint: fingerprint, note: `the address ${server} is ${what}; ${GIVE_ANOTHER}` };
}

/** Returns the address with the widest reach; null without a network. */
async function lanAddress({ sourceAddress, interfaces }: Pick<Network, 'interfaces' | 'sourceAddress'>): Promise<string | null> {
  for (const destination of FAR) {
    const source = (await sourceAddress?.(destination)) ?? null;
    if (source !== null) return source;
  }
  return reachableAddresses(interfaces?.() ?? [])[0] ?? null;
}
