/** The caller of a request, and the attributes that it adds to every request (docs/iam.md). */
import type { IamUser } from '../../protocol/records/index.ts';
import type { DeviceConnection } from '../connections.ts';
import type { Lookup } from './conditions.ts';
import type { Attributes } from './policy.ts';
import type { Users } from './users.ts';

/** The facts about a request's connection. */
export interface Caller {
  /** Full hex fingerprint of the client's key. */
  readonly fingerprint: string;
  readonly isLocal: boolean;
  /** Name of the password authentication: '' for open pairing; absent without one. */
  readonly passwordUsername?: string;
  /** User that the application bound to the connection (OAuth). */
  readonly boundUsername?: string;
}

/** An action that policies must allow. */
export interface Demand {
  readonly action: string;
  readonly attributes?: Attributes;
}

/** A refusal to a client. */
export interface Denial {
  readonly caller: Caller;
  readonly action: string;
  readonly attributes: Attributes;
}

/** Returns the caller that the connection represents now. */
export function callerOf(connection: DeviceConnection): Caller {
  const { clientFingerprint: fingerprint, isLocal, isPasswordAuthenticated, boundUsername } = connection;
  return {
    fingerprint,
    isLocal,
    ...(isPasswordAuthenticated && { passwordUsername: connection.passwordAuthenticationUsername }),
    ...(boundUsername !== null && { boundUsername }),
  };
}

/** Returns the user of the client's key, else of the password authentication, else the one bound by the application. */
export function resolveCaller(users: Users, { fingerprint, passwordUsername, boundUsername }: Caller): IamUser | undefined {
  return (
    users.byFingerprint(fingerprint) ??
    (passwordUsername === undefined ? undefined : users.user(passwordUsername)) ??
    (boundUsername === undefined ? undefined : users.user(boundUsername))
  );
}

/**
 * Returns the attributes of a request. `Connection:*` are facts about the connection; no attribute of the request can
 * replace them.
 */
export function requestAttributes(caller: Caller, user: IamUser | undefined, attributes: Attributes): Lookup {
  return (name) => {
    if (name === 'Connection:IsLocal') return caller.isLocal ? 'true' : 'false';
    if (name === 'Connection:Username') return user?.username;
    return Object.hasOwn(attributes, name) ? attributes[name] : undefined;
  };
}
