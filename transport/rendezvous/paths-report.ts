/** The paths of a connection as a person may want to see them: which is in use, what it goes over, and why it is not a direct one. */
import type { NatReport } from '../../protocol/control/index.ts';
import type { Path } from '../../protocol/path.ts';
import { type NotDirect, notDirect, type PairReport, type PathClass } from '../../protocol/rendezvous/index.ts';
import type { PathsOfSession } from './sessions.ts';

export interface PathReport {
  /** In use now; the others are kept warm. */
  readonly active: boolean;
  readonly over: PathClass;
  /** Of the peer; of the base station for the relay. */
  readonly address: string;
  readonly port: number;
  /** Smoothed round-trip time, ms; null while nothing was measured. */
  readonly rtt: number | null;
  /** Unix ms: since when it is in use, or was known. */
  readonly since: number;
}

export interface PathsReport {
  readonly paths: readonly PathReport[];
  /** What is known of the NATs of both ends; null before the first attempt. */
  readonly localNat: NatReport | null;
  readonly remoteNat: NatReport | null;
  /** Each address of the other end that the last attempt tried. */
  readonly pairs: readonly PairReport[];
  /** Null for a connection that is direct. */
  readonly whyNotDirect: NotDirect | null;
  /** ms until the next attempt; null: one is under way, or none will be made. */
  readonly nextAttempt: number | null;
}

export function classOf({ kind, address }: Pick<Path, 'kind' | 'address'>, isNear: (address: string) => boolean): PathClass {
  if (kind === 'route') return 'relay';
  if (isNear(address)) return 'lan';
  return address.includes(':') ? 'ipv6' : 'ipv4';
}

/** Of a connection that looks for no direct path. @param isNear whether an address is in a network of this host */
export function idleReport(session: PathsOfSession, isNear: (address: string) => boolean): PathsReport {
  const whyNotDirect = session.type === 'DIRECT' ? null : notDirect('DISABLED');
  return { paths: pathReports(session, new Map(), isNear), localNat: null, remoteNat: null, pairs: [], whyNotDirect, nextAttempt: null };
}

export function pathReports(
  session: PathsOfSession,
  since: ReadonlyMap<Path, number>,
  isNear: (address: string) => boolean,
): readonly PathReport[] {
  return session.paths.map((path) => {
    const { address, port } = path;
    const rtt = session.pathStats(path)?.rtt ?? 0;
    return {
      active: path === session.path,
      over: classOf(path, isNear),
      address,
      port,
      rtt: rtt > 0 ? rtt : null,
      since: since.get(path) ?? 0,
    };
  });
}
