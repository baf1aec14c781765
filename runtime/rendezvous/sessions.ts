/** The parts of a session that each piece of the rendezvous needs: its decisions run against anything that has them. */
import type { Session, SessionPaths } from '../session/index.ts';

/** A client's session, in which one attempt talks with the device. */
export interface AskingSession extends Pick<Session, 'request' | 'observe'> {
  readonly peer: Pick<Session['peer'], 'fingerprint' | 'verified'>;
  readonly paths: Pick<SessionPaths, 'rtt'>;
}

/** A session of either end, whose paths are reported. */
export interface PathsOfSession extends Pick<Session, 'restReason'> {
  readonly paths: Pick<SessionPaths, 'active' | 'all' | 'stats' | 'type'>;
}

/** A client's session, which a search migrates between paths. */
export interface MigratingSession extends AskingSession, PathsOfSession, Pick<Session, 'isOpen' | 'on'> {
  readonly paths: Pick<SessionPaths, 'active' | 'all' | 'rtt' | 'stats' | 'type' | 'supplyIds' | 'migrate' | 'keep' | 'remove'>;
}

/** A device's session, whose client begins rounds. */
export interface ServingSession extends Pick<Session, 'notify' | 'on' | 'isOpen'> {
  readonly peer: Pick<Session['peer'], 'fingerprint'>;
  readonly paths: Pick<SessionPaths, 'all' | 'rtt' | 'type'>;
}
