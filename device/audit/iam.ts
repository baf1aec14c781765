/**
 * Maps changes of access control to entries of the audit log. Entries name passwords, tokens and push registrations,
 * but never contain them.
 */
import { check, withMethods } from '../../protocol/arguments.ts';
import type { Iam, IamChange } from '../iam/index.ts';
import type { AuditDetails } from './entry.ts';
import { type AuditLog, subjectDetails } from './log.ts';

/** An entry to be written. */
export interface AuditEvent {
  readonly event: string;
  readonly details: AuditDetails;
}

/**
 * Records every change: `iam.update` resolves when its entries are on disk. Returns the function that ends it.
 * A change whose entry cannot be written still counts; a later entry has the number of those lost.
 */
export function auditIam(iam: Iam, log: AuditLog): () => void {
  check('access control', iam, withMethods('record'));
  check('the audit log', log, withMethods('append'));
  return iam.record(async (changes) => {
    const entries = changes.flatMap(auditEvents).map(({ event, details }) => log.append(event, details));
    await Promise.all(entries);
  });
}

/** Returns the entries of a change, in order. */
export function auditEvents(change: IamChange): AuditEvent[] {
  const by = change.by === undefined ? {} : { By: subjectDetails(change.by) };
  return eventsOf(change).map(({ event, details }) => ({ event, details: { ...details, ...by } }));
}

function eventsOf(change: IamChange): AuditEvent[] {
  switch (change.kind) {
    case 'user-created':
      return [{ event: 'user-created', details: { Username: change.username, Role: change.user.role } }];
    case 'user-deleted':
      return [{ event: 'user-deleted', details: { Username: change.username } }];
    case 'user-paired': {
      const { username, mode, fingerprint, by } = change;
      return [{ event: 'paired', details: { Username: username, Mode: mode, Fingerprint: fingerprint, Local: by?.isLocal } }];
    }
    case 'settings-changed':
      return [{ event: 'setting-changed', details: { Setting: change.setting, Value: change.value } }];
    case 'configuration-changed':
      return [{ event: 'configuration-changed', details: {} }];
    case 'user-changed':
      return userEvents(change);
  }
}

function userEvents({ username, setting, previous, user }: Extract<IamChange, { kind: 'user-changed' }>): AuditEvent[] {
  switch (setting) {
    case 'username':
      return [{ event: 'user-renamed', details: { Username: username, From: previous.username } }];
    case 'role':
      return [{ event: 'role-changed', details: { Username: username, From: previous.role, To: user.role } }];
    case 'password':
      return [{ event: 'password-changed', details: { Username: username } }];
    case 'fingerprint':
      return [
        ...missing(user.fingerprints, previous.fingerprints).map((key) => keyEvent('fingerprint-removed', username, key)),
        ...missing(previous.fingerprints, user.fingerprints).map((key) => keyEvent('fingerprint-added', username, key)),
      ];
    default:
      return [{ event: 'user-setting-changed', details: { Username: username, Setting: setting } }];
  }
}

type Key = IamChangeKeys[number];
type IamChangeKeys = Extract<IamChange, { kind: 'user-created' }>['user']['fingerprints'];

/** Returns the keys of `all` that are not in `from`. */
function missing(from: IamChangeKeys, all: IamChangeKeys): Key[] {
  const there = new Set(from.map(({ fingerprint }) => fingerprint));
  return all.filter(({ fingerprint }) => !there.has(fingerprint));
}

function keyEvent(event: string, username: string, { fingerprint, name }: Key): AuditEvent {
  return { event, details: { Username: username, Fingerprint: fingerprint, Name: name } };
}
