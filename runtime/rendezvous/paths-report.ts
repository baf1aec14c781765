/**
 * The paths of a connection, as a report for a person: which is in use, over which network it leads, and why it is not
 * direct.
 */
import type { NatReport, SocketAddress } from '../../protocol/control/index.ts';
import type { Path } from '../../protocol/path.ts';
import { type NotDirect, notDirect, type PairReport, type PathClass, type StunAnswer } from '../../protocol/rendezvous/index.ts';
import type { KeepAliveReport } from '../keep-alive/index.ts';
import type { Gatherer } from './gatherer.ts';
import type { PathsOfSession } from './sessions.ts';
import type { StationView } from './station-view.ts';

/** ms for which a connection that has become direct still reports the findings of the attempt. */
export const FACTS_KEPT = 60_000;

export interface PathReport {
  /** In use now; other paths are kept warm. */
  readonly active: boolean;
  readonly over: PathClass;
  /** The peer's address; the base station's for the relay. */
  readonly address: string;
  readonly port: number;
  /** Smoothed round-trip time, ms; null before the first measurement. */
  readonly rtt: number | null;
  /** Unix ms: when the active path came into use; for other paths, when the connection was opened. */
  readonly since: number;
}

/** Unix ms: when the connection was opened, and when it began to use its present path. */
export interface PathTimes {
  readonly opened: number;
  readonly migrated: number;
}

/** This end's knowledge of its base station. */
export interface StationReport extends SocketAddress {
  /**
   * `websocket` where UDP to it is silent: `address` and `port` are then those of the TCP connection, which may end at
   * a proxy.
   */
  readonly over: 'udp' | 'websocket';
  /** `host:port` of the HTTP proxy of the WebSocket; null for none. */
  readonly proxy: string | null;
  /** This end's address as the base station sees it; null before its first report. */
  readonly observed: SocketAddress | null;
  /** Its STUN ports with their answers; empty where it has none, or before they were queried. */
  readonly stun: readonly StunAnswer[];
}

export interface PathsReport {
  readonly paths: readonly PathReport[];
  /**
   * Why the connection rests: it has lost its last path, which is still listed, and waits for another one for at most a
   * minute. Null while it has one.
   */
  readonly rest: { readonly code: string; readonly text: string } | null;
  /** The base station behind the connection's route, on a device the one it is attached to; null without one. */
  readonly station: StationReport | null;
  /**
   * Findings about the NATs of both ends; null before the first attempt, and once a connection has been direct for a
   * minute.
   */
  readonly localNat: NatReport | null;
  readonly remoteNat: NatReport | null;
  /** Each address of the peer that the last attempt tried; empty where `localNat` is null. */
  readonly pairs: readonly PairReport[];
  /** Null for a direct connection. */
  readonly whyNotDirect: NotDirect | null;
  /**
   * ms until the next attempt; where only the sprayed stage is left and LIMITED, until it may be repeated, with simpler
   * attempts before. null: one is under way, or none will follow.
   */
  readonly nextAttempt: number | null;
  /**
   * How long this host's NAT keeps a mapping, and the keep-alive interval of the channel to the base station, or of the
   * connection without one.
   */
  readonly keepAlive: KeepAliveReport;
}

export function classOf({ kind, address }: Pick<Path, 'kind' | 'address'>, isNear: (address: string) => boolean): PathClass {
  if (kind === 'route') return 'relay';
  if (isNear(address)) return 'lan';
  return address.includes(':') ? 'ipv6' : 'ipv4';
}

/**
 * Reports a connection that does not search for a direct path.
 * @param isNear returns whether an address is in a network of this host
 */
export function idleReport(
  session: PathsOfSession,
  isNear: (address: string) => boolean,
  station: StationReport | null,
  keepAlive: KeepAliveReport,
): PathsReport {
  const whyNotDirect = session.paths.type === 'DIRECT' ? null : notDirect('DISABLED');
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

/** @param times null where they were not recorded: `since` is 0 */
export function pathReports(session: PathsOfSession, times: PathTimes | null, isNear: (address: string) => boolean): readonly PathReport[] {
  return session.paths.all.map((path) => {
    const { address, port } = path;
    const active = path === session.paths.active;
    // Before the first sample the smoothed round trip is a guess (RFC 9002 §6.2.2).
    const { rtt = 0, minimumRtt = 0 } = session.paths.stats(path) ?? {};
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
