/** The paths of a connection as a person may want to see them: which is in use, what it goes over, and why it is not a direct one. */
import type { NatReport, SocketAddress } from '../../protocol/control/index.ts';
import type { Path } from '../../protocol/path.ts';
import { type NotDirect, notDirect, type PairReport, type PathClass, type StunAnswer } from '../../protocol/rendezvous/index.ts';
import type { KeepAliveReport } from '../keep-alive/index.ts';
import type { Gatherer } from './gatherer.ts';
import type { PathsOfSession } from './sessions.ts';
import type { StationView } from './station-view.ts';

/** ms for which a connection that has become direct still reports what the attempt has shown. */
export const FACTS_KEPT = 60_000;

export interface PathReport {
  /** In use now; the others are kept warm. */
  readonly active: boolean;
  readonly over: PathClass;
  /** Of the peer; of the base station for the relay. */
  readonly address: string;
  readonly port: number;
  /** Smoothed round-trip time, ms; null while nothing was measured. */
  readonly rtt: number | null;
  /** Unix ms: since when the path in use is; of others: since when there is the connection. */
  readonly since: number;
}

/** Unix ms: since when there is a connection, and since when it uses the path of now. */
export interface PathTimes {
  readonly opened: number;
  readonly migrated: number;
}

/** What this end knows from its base station. */
export interface StationReport extends SocketAddress {
  /** `websocket` where UDP to it is silent: `address` and `port` are then those of the TCP connection, which may end at a proxy. */
  readonly over: 'udp' | 'websocket';
  /** `host:port` of the HTTP proxy that the WebSocket goes through; null for none. */
  readonly proxy: string | null;
  /** This end as the base station sees it; null when it has not said. */
  readonly observed: SocketAddress | null;
  /** Its STUN ports with what they said; empty where it has none, or before they were asked. */
  readonly stun: readonly StunAnswer[];
}

export interface PathsReport {
  readonly paths: readonly PathReport[];
  /** Why the connection rests: it has lost its last path, which is still listed, and waits for another one, a minute at most. Null while it has one. */
  readonly rest: { readonly code: string; readonly text: string } | null;
  /** The base station behind the connection's route, on a device the one it is attached to; null without one. */
  readonly station: StationReport | null;
  /** What is known of the NATs of both ends; null before the first attempt, and once a connection has been direct for a minute. */
  readonly localNat: NatReport | null;
  readonly remoteNat: NatReport | null;
  /** Each address of the other end that the last attempt tried; empty where `localNat` is null. */
  readonly pairs: readonly PairReport[];
  /** Null for a connection that is direct. */
  readonly whyNotDirect: NotDirect | null;
  /** ms until the next attempt; null: one is under way, or none will be made. */
  readonly nextAttempt: number | null;
  /** How long the NAT before this host keeps a mapping, and how often the channel to the base station is kept alive, or the connection where there is none. */
  readonly keepAlive: KeepAliveReport;
}

export function classOf({ kind, address }: Pick<Path, 'kind' | 'address'>, isNear: (address: string) => boolean): PathClass {
  if (kind === 'route') return 'relay';
  if (isNear(address)) return 'lan';
  return address.includes(':') ? 'ipv6' : 'ipv4';
}

/** Of a connection that looks for no direct path. @param isNear whether an address is in a network of this host */
export function idleReport(
  session: PathsOfSession,
  isNear: (address: string) => boolean,
  station: StationReport | null,
  keepAlive: KeepAliveReport,
): PathsReport {
  const whyNotDirect = session.type === 'DIRECT' ? null : notDirect('DISABLED');
  return {
    paths: pathReports(session, null, isNear),
    rest: restReport(session),
    station,
    localNat: null,
    remoteNat: null,
    pairs: [],
    whyNotDirect,
    nextAttempt: null,
    keepAlive,
  };
}

export function restReport({ restReason }: Pick<PathsOfSession, 'restReason'>): PathsReport['rest'] {
  return restReason === null ? null : { code: restReason.code, text: restReason.message };
}

export function stationReport(station: StationView | null, gatherer: Pick<Gatherer, 'stunAnswers'>): StationReport | null {
  if (station === null) return null;
  const { at, observed, webSocket } = station;
  const over = webSocket === undefined ? 'udp' : 'websocket';
  return { ...at, over, proxy: webSocket?.proxy ?? null, observed, stun: gatherer.stunAnswers(station) };
}

/** @param times null where nobody noted them: `since` is 0 */
export function pathReports(session: PathsOfSession, times: PathTimes | null, isNear: (address: string) => boolean): readonly PathReport[] {
  return session.paths.map((path) => {
    const { address, port } = path;
    const active = path === session.path;
    // Before the first sample the smoothed one is a guess (RFC 9002 §6.2.2).
    const { rtt = 0, minimumRtt = 0 } = session.pathStats(path) ?? {};
    return {
      active,
      over: classOf(path, isNear),
      address,
      port,
      rtt: minimumRtt > 0 ? rtt : null,
      since: (active ? times?.migrated : times?.opened) ?? 0,
    };
  });
}
