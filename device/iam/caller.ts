/** Who asks (reference §2.1), and what every request tells about it. */
import type { IamUser } from '../../protocol/records/index.ts';
import type { DeviceConnection } from '../connections.ts';
import type { Lookup } from './conditions.ts';
import type { Attributes } from './policy.ts';
import type { Users } from './users.ts';

/** What is known of the connection a request comes over. */
export interface Caller {
  /** Full hex fingerprint of the client's key. */
  readonly fingerprint: string;
  readonly isLocal: boolean;
  /** Name of the password authentication: '' is the one of open pairing; absent without one. */
  readonly passwordUsername?: string;
  /** User the application bound to the connection (OAuth). */
  readonly boundUsername?: string;
}

/** What policies are asked for. */
export interface Demand {
  readonly action: string;
  readonly attributes?: Attributes;
}

/** What a client was refused. */
export interface Denial {
  readonly caller: Caller;
  readonly action: string;
  readonly attributes: Attributes;
}

/** What the connection says now. */
export function callerOf(connection: DeviceConnection): Caller {
  const { clientFingerprint: fingerprint, isLocal, isPasswordAuthenticated, boundUsername } = connection;
  return {
    fingerprint,
    isLocal,
    ...(isPasswordAuthenticated && { passwordUsername: connection.passwordAuthenticationUsername }),
    ...(boundUsername !== null && { boundUsername }),
  };
}

/** The user of the client's key, else of the password authentication, else the one the application bound. */
export function resolveCaller(users: Users, { fingerprint, passwordUsername, boundUsername }: Caller): IamUser | undefined {
  return (
    users.byFingerprint(fingerprint) ??
    (passwordUsername === undefined ? undefined : users.user(passwordUsername)) ??
    (boundUsername === undefined ? undefined : users.user(boundUsername))
  );
}

/** Attributes of a request: `Connection:*` are facts of the connection, nothing a request says can take their place. */
export function requestAttributes(caller: Caller, user: IamUser | undefined, attributes: Attributes): Lookup {
  return (name) => {
    if (name === 'Connection:IsLocal') return caller.isLocal ? 'true' : 'false';
    if (name === 'Connection:Username') return user?.username;
    return Object.hasOwn(attributes, name) ? attributes[name] : undefined;
  };
}
