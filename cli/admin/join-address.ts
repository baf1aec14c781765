/** Where a board reaches a base station, as join strings say it. */
import { formatHostPort, isHostPort } from '../../protocol/records/index.ts';
import type { LastStart } from '../../server/administration/index.ts';
import type { Network } from '../../transport/environment.ts';
import { reachableAddresses } from '../../transport/node/index.ts';
import { DEFAULT_SERVER_PORT, parseServerUrl } from '../../transport/station/index.ts';
import { CommandError } from '../frame/errors.ts';
import { isWildcard } from '../frame/loopback.ts';

/** A base station as a join string names it. */
interface JoinAddress {
  /** `host:port`. */
  readonly server: string;
  /** Undefined where TLS proves it. */
  readonly serverFingerprint: string | undefined;
  /** Where the address comes from, when its operator has not said it: one line. */
  readonly note: string | undefined;
}

/** Addresses of documentation (RFC 5737, RFC 3849): the way there is the way to the internet. Nothing is sent. */
const FAR = ['192.0.2.1', '2001:db8::1'];
const LOOPBACK = '127.0.0.1';
const STATE_ANOTHER = 'state another with svc basestation --url https://host:port';

/** @param start how the base station was started last @throws CommandError for an address that leads nowhere from another machine */
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
  // A zone, as in fe80::1%eth0, means something on this machine only.
  if (!isHostPort(server)) throw new CommandError(`the address ${server} does not lead here from another machine: ${STATE_ANOTHER}`);
  const what =
    address === null ? 'this machine alone, as it is in no network' : isOne ? 'the one of --host' : 'that of this machine in its network';
  return { server, serverFingerprint: fingerprint, note: `the address ${server} is ${what}; ${STATE_ANOTHER}` };
}

/** The address that leads furthest; null without a network. */
async function lanAddress({ sourceAddress, interfaces }: Pick<Network, 'interfaces' | 'sourceAddress'>): Promise<string | null> {
  for (const destination of FAR) {
    const source = (await sourceAddress?.(destination)) ?? null;
    if (source !== null) return source;
  }
  return reachableAddresses(interfaces?.() ?? [])[0] ?? null;
}
