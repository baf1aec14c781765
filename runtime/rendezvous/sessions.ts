/** The parts of a session that each piece of the rendezvous needs: its decisions run against anything that has them. */
import type { Session } from '../session/index.ts';

/** A client's session, in which one attempt talks with the device. */
export type AskingSession = Pick<Session, 'remoteFingerprint' | 'verified' | 'rtt' | 'request' | 'observe'>;

/** A session of either end, whose paths are reported. */
export type PathsOfSession = Pick<Session, 'path' | 'paths' | 'pathStats' | 'restReason' | 'type'>;

/** A client's session, which a search migrates between paths. */
export type MigratingSession = AskingSession &
  PathsOfSession &
  Pick<Session, 'isOpen' | 'on' | 'supplyIds' | 'migrate' | 'keepPath' | 'removePath'>;

/** A device's session, whose client begins rounds. */
export type ServingSession = Pick<Session, 'remoteFingerprint' | 'rtt' | 'notify' | 'on' | 'isOpen' | 'paths' | 'type'>;
