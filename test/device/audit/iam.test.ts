/** A change of access control is in the audit log before it is acknowledged, with its author and without a secret. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { auditIam } from '../../../device/audit/index.ts';
import type { Iam } from '../../../device/iam/index.ts';
import { caller, iamOf, key, stateOf, user } from '../iam/model.ts';
import { useLogDirectory } from './log-directory.ts';

const logs = useLogDirectory();

const administrator = user('boss', { role: 'Administrator', fingerprints: [{ fingerprint: key(9) }] });
const byBoss = { Username: 'boss', Fingerprint: key(9), Local: true };

function iam(settings: Parameters<typeof stateOf>[1] = {}): Iam {
  const guest = user('ann', { role: 'Guest', fingerprints: [{ fingerprint: key(1), name: 'Phone' }], sct: 'token-of-ann' });
  return iamOf({ state: stateOf([administrator, guest], settings), notificationCategories: ['Info'] });
}

/** Returns the entries that a change makes. */
async function entriesOf(model: Iam, change: () => Promise<unknown>): Promise<Record<string, unknown>[]> {
  const log = await logs().open();
  const stop = auditIam(model, log);
  await change();
  const written = logs().events().slice(1);
  stop();
  await log.close();
  expect(logs().events().slice(1), 'all of it was written before the change was acknowledged').toEqual(written);
  return written;
}

describe('a change by a user', () => {
  const update = (change: Parameters<Iam['update']>[0]) => (model: Iam) => model.update(change, caller(9));
  it.each<[name: string, change: (model: Iam) => Promise<unknown>, ...entries: Record<string, unknown>[]]>([
    [
      'a new user',
      update((draft) => draft.createUser('carl', { role: 'Guest' })),
      { Event: 'user-created', Username: 'carl', Role: 'Guest' },
    ],
    ['a deleted user', update((draft) => draft.deleteUser('ann')), { Event: 'user-deleted', Username: 'ann' }],
    ['a new name', update((draft) => draft.setUserUsername('ann', 'anna')), { Event: 'user-renamed', Username: 'anna', From: 'ann' }],
    [
      'a role',
      update((draft) => draft.setUserRole('ann', 'Standard')),
      { Event: 'role-changed', Username: 'ann', From: 'Guest', To: 'Standard' },
    ],
    ['a role that goes', update((draft) => draft.setUserRole('ann', undefined)), { Event: 'role-changed', Username: 'ann', From: 'Guest' }],
    ['a password', (model) => model.setUserPassword('ann', 'top-secret', caller(9)), { Event: 'password-changed', Username: 'ann' }],
    [
      'a further key',
      update((draft) => draft.addUserFingerprint('ann', key(2), 'Laptop')),
      { Event: 'fingerprint-added', Username: 'ann', Fingerprint: key(2), Name: 'Laptop' },
    ],
    [
      'a key for another',
      update((draft) => draft.setUserFingerprint('ann', key(2))),
      { Event: 'fingerprint-removed', Username: 'ann', Fingerprint: key(1), Name: 'Phone' },
      { Event: 'fingerprint-added', Username: 'ann', Fingerprint: key(2) },
    ],
    [
      'what is no one else’s business',
      update((draft) => {
        draft.setUserSct('ann', 'secret-token');
        draft.setUserPush('ann', { projectId: 'p', token: 'secret-push' });
        draft.setUserNotificationCategories('ann', ['Info']);
        draft.setUserOauthSubject('ann', 'secret-subject');
        draft.setUserDisplayName('ann', 'Ann');
      }),
      ...['sct', 'push', 'notification-categories', 'oauth-subject', 'display-name'].map((Setting) => ({
        Event: 'user-setting-changed',
        Username: 'ann',
        Setting,
      })),
    ],
    [
      'settings of the device',
      update((draft) => {
        draft.setFlag('passwordOpenPairing', true);
        draft.setOpenPairingRole('Guest');
        draft.setOpenPairingSct('secret-open-token');
      }),
      { Event: 'setting-changed', Setting: 'password-open-pairing', Value: true },
      { Event: 'setting-changed', Setting: 'open-pairing-role', Value: 'Guest' },
      { Event: 'setting-changed', Setting: 'open-pairing-sct' },
    ],
    [
      'the password of open pairing',
      (model) => model.setOpenPairingPassword('open-secret', caller(9)),
      { Event: 'setting-changed', Setting: 'open-pairing-password' },
    ],
    ['policies', (model) => model.setConfiguration(model.configuration, caller(9)), { Event: 'configuration-changed' }],
  ])('is written: %s', async (_, change, ...entries) => {
    const model = iam();
    expect(await entriesOf(model, () => change(model))).toEqual(entries.map((entry) => ({ ...entry, By: byBoss })));
    expect(logs().lines().join()).not.toContain('secret');
  });

  it('that is refused makes no entry', async () => {
    const model = iam();
    const refused = () => expect(model.update((draft) => draft.deleteUser('nobody'))).rejects.toMatchObject({ code: 'NOT_FOUND' });
    expect(await entriesOf(model, refused)).toEqual([]);
  });

  it('of the application itself has no author', async () => {
    const model = iam();
    const entries = await entriesOf(model, () => model.update((draft) => draft.setFriendlyName('Kitchen')));
    expect(entries).toEqual([{ Event: 'setting-changed', Setting: 'friendly-name', Value: 'Kitchen' }]);
  });

  it('takes effect even if it cannot be logged', async () => {
    const model = iam();
    const log = await logs().open();
    auditIam(model, log);
    rmSync(join(logs().directory, 'audit'), { recursive: true });
    await model.update((draft) => draft.deleteUser('ann'));
    expect(model.user('ann')).toBeUndefined();
    await log.close();
  });
});

describe('pairing', () => {
  const by = (number: number, more = {}) => ({ Fingerprint: key(number), Local: true, ...more });

  it('is written with mode, key and locality', async () => {
    const model = iam({ localOpenPairing: true, openPairingRole: 'Guest' });
    expect(await entriesOf(model, () => model.pairLocalOpen(caller(3), 'carl'))).toEqual([
      { Event: 'user-created', Username: 'carl', Role: 'Guest', By: by(3) },
      { Event: 'paired', Username: 'carl', Mode: 'LocalOpen', Fingerprint: key(3), Local: true, By: by(3) },
    ]);
  });

  it('by invitation logs that the password is used up', async () => {
    const model = iam({ passwordInvitePairing: true });
    await model.setUserPassword('ann', 'invitation');
    const invited = caller(4, { isLocal: false, passwordUsername: 'ann' });
    const asAnn = by(4, { Username: 'ann', Local: false });
    expect(await entriesOf(model, () => model.pairPasswordInvite(invited))).toEqual([
      { Event: 'fingerprint-added', Username: 'ann', Fingerprint: key(4), By: asAnn },
      { Event: 'password-changed', Username: 'ann', By: asAnn },
      { Event: 'paired', Username: 'ann', Mode: 'PasswordInvite', Fingerprint: key(4), Local: false, By: asAnn },
    ]);
  });

  it('for the second time changes and writes nothing', async () => {
    const model = iam({ localOpenPairing: true, openPairingRole: 'Guest' });
    await model.pairLocalOpen(caller(3), 'carl');
    expect(await entriesOf(model, () => model.pairLocalOpen(caller(3), 'carl'))).toEqual([]);
  });
});
