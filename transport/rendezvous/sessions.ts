/** What the rendezvous needs of a session, by who needs it: its decisions run against anything that has so much. */
import type { Session } from '../session/index.ts';

/** A client's, in which one attempt talks with the device. */
export type AskingSession = Pick<Session, 'remoteFingerprint' | 'verified' | 'rtt' | 'request' | 'observe'>;

/** A client's or a device's, whose paths are reported. */
export type PathsOfSession = Pick<Session, 'path' | 'paths' | 'pathStats' | 'restReason' | 'type'>;

/** A client's, which a search moves from path to path. */
export type MovingSession = AskingSession &
  PathsOfSession &
  Pick<Session, 'isOpen' | 'on' | 'supplyIds' | 'migrate' | 'keepPath' | 'removePath'>;

/** A device's, whose client begins rounds. */
export type ServingSession = Pick<Session, 'remoteFingerprint' | 'rtt' | 'notify' | 'on' | 'isOpen' | 'paths' | 'type'>;
