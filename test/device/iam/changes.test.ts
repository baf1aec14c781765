/** Changes of the model: one after the other, saved before they count, and recorded before they are acknowledged. */
import { describe, expect, it } from 'vitest';
import type { IamChange, IamDraft, StateDocument } from '../../../device/iam/index.ts';
import { codeOf } from '../../support/code-of.ts';
import { eventually } from '../../support/eventually.ts';
import { ann, caller, iamWithUsers, key } from './model.ts';

describe('a change', () => {
  it('counts only once it is saved', async () => {
    let saved: (() => void) | undefined;
    const iam = iamWithUsers({ save: () => new Promise<void>((resolve) => (saved = resolve)) });
    const changes: IamChange[] = [];
    iam.onChange((change) => changes.push(change));
    const done = iam.update((draft) => draft.deleteUser('ann'));
    expect(iam.user('ann')).toBeDefined();
    expect(changes).toEqual([]);
    saved?.();
    await done;
    expect(iam.user('ann')).toBeUndefined();
    expect(changes).toEqual([{ kind: 'user-deleted', username: 'ann', previous: ann.user }]);
  });

  it('that adds a key notes the day, where the time is known', async () => {
    const added = (now?: () => number) => async () => {
      const iam = iamWithUsers(now === undefined ? {} : { now });
      await iam.update((draft) => {
        draft.addUserFingerprint('bob', key(7), 'Phone');
        draft.createUser('carl', { fingerprints: [{ fingerprint: key(8) }] });
        draft.createUser('dora');
        draft.setUserFingerprint('dora', key(9));
      });
      return ['bob', 'carl', 'dora'].map((name) => iam.user(name)?.fingerprints[0]?.added);
    };
    const day = '2026-01-02';
    expect(await added(() => Date.UTC(2026, 0, 2, 23))()).toEqual([day, day, day]);
    expect(await added()()).toEqual([undefined, undefined, undefined]);
  });

  it('whose save fails is dropped with those that build on it, and the next one counts', async () => {
    let fails = true;
    const documents: StateDocument[] = [];
    const save = async (document: StateDocument) => {
      if (fails) throw new Error('the disk is full');
      documents.push(document);
    };
    const iam = iamWithUsers({ save });
    const { state } = iam;
    const first = iam.update((draft) => draft.createUser('carl'));
    const second = iam.update((draft) => draft.createUser('dora'));
    const third = iam.update((draft) => draft.createUser('dora'));
    await expect(first).rejects.toThrow('the disk is full');
    await expect(second).rejects.toThrow('the disk is full');
    await expect(third).rejects.toThrow('the disk is full');
    expect(iam.state).toBe(state);
    fails = false;
    await iam.update((draft) => draft.createUser('dora'));
    expect(iam.usernames).toEqual(['ann', 'bob', 'boss', 'dora']);
    expect(documents).toHaveLength(1);
  });

  it('that throws leaves nothing behind, and does not disturb its neighbours', async () => {
    const iam = iamWithUsers();
    const results = await Promise.all([
      codeOf(() => iam.update((draft) => draft.setFriendlyName('Kitchen'))),
      codeOf(() =>
        iam.update((draft) => {
          draft.deleteUser('ann');
          draft.deleteUser('gone');
        }),
      ),
      codeOf(() => iam.update((draft) => draft.setUserDisplayName('bob', 'Bob'))),
    ]);
    expect(results).toEqual(['OK', 'NOT_FOUND', 'OK']);
    expect([iam.state.friendlyName, iam.user('ann'), iam.user('bob')?.displayName]).toEqual(['Kitchen', ann.user, 'Bob']);
  });

  it('shares its save with others that wait, and all see each other', async () => {
    let saves = 0;
    const iam = iamWithUsers({ save: async () => void saves++ });
    const all = Array.from({ length: 50 }, () => iam.update((draft) => draft.setFriendlyName(`${draft.state.friendlyName ?? ''}x`)));
    await Promise.all(all);
    expect(iam.state.friendlyName).toBe('x'.repeat(50));
    expect(saves).toBeLessThanOrEqual(2);
  });

  it('that changes nothing is not saved', async () => {
    let saves = 0;
    const iam = iamWithUsers({ save: async () => void saves++ });
    expect(await iam.update((draft) => draft.user('ann').username)).toBe('ann');
    expect(saves).toBe(0);
  });

  it('ends with its function: a draft that is kept changes nothing', async () => {
    const iam = iamWithUsers();
    const draft = await iam.update((draft: IamDraft) => draft);
    expect(() => draft.deleteUser('ann')).toThrow(expect.objectContaining({ code: 'INVALID_STATE' }));
    expect(iam.user('ann')).toBeDefined();
  });

  it('of a client is refused when an earlier change took its right', async () => {
    const iam = iamWithUsers();
    const asBoss = caller(3, { boundUsername: 'boss' });
    const demand = { action: 'IAM:DeleteUser', attributes: { 'IAM:Username': 'ann' } };
    const remove = (draft: IamDraft) => draft.deleteUser('ann');
    const demoted = iam.update((draft) => draft.setUserRole('boss', 'Guest'));
    expect(iam.check(asBoss, demand.action, demand.attributes)).toBe(true);
    expect(await codeOf(() => iam.update(remove, asBoss, demand))).toBe('FORBIDDEN');
    await demoted;
    expect(iam.user('ann')).toBeDefined();
    await iam.update((draft) => draft.setUserRole('boss', 'Administrator'));
    expect(await codeOf(() => iam.update(remove, asBoss, demand))).toBe('OK');
  });

  it('succeeds when a listener fails, and settled waits for it', async () => {
    const iam = iamWithUsers();
    iam.onChange(() => {
      throw new Error('a bug');
    });
    void iam.update((draft) => draft.deleteUser('ann'));
    await iam.settled();
    expect(iam.user('ann')).toBeUndefined();
  });
});

describe('a record of changes', () => {
  it('is made after the save and before the acknowledgement, with the caller', async () => {
    const order: unknown[] = [];
    const iam = iamWithUsers({ save: async () => void order.push('saved') });
    let recorded: (() => void) | undefined;
    iam.record(async (changes) => {
      order.push(changes.map(({ kind, by }) => [kind, by?.username]));
      await new Promise<void>((resolve) => (recorded = resolve));
    });
    const asBoss = caller(5, { passwordUsername: 'boss' });
    const done = iam.update((draft) => draft.deleteUser('boss'), asBoss).then(() => order.push('acknowledged'));
    await eventually(() => expect(recorded).toBeDefined());
    expect(order).toEqual(['saved', [['user-deleted', 'boss']]]);
    recorded?.();
    await done;
    expect(order).toHaveLength(3);
  });

  it('has values, but no secret, and the key alone of a caller that is no user', async () => {
    const iam = iamWithUsers();
    const changes: IamChange[] = [];
    iam.record(async (each) => void changes.push(...each));
    await iam.update((draft) => {
      draft.setFlag('localOpenPairing', true);
      draft.setFriendlyName('Kitchen');
      draft.setFriendlyName(undefined);
      draft.setOpenPairingSct('token-of-open-pairing');
    });
    await iam.setOpenPairingPassword('open-sesame', caller(77));
    expect(changes).toEqual([
      { kind: 'settings-changed', setting: 'local-open-pairing', value: true },
      { kind: 'settings-changed', setting: 'friendly-name', value: 'Kitchen' },
      { kind: 'settings-changed', setting: 'friendly-name' },
      { kind: 'settings-changed', setting: 'open-pairing-sct' },
      { kind: 'settings-changed', setting: 'open-pairing-password', by: caller(77) },
    ]);
  });

  it('of the configuration is made, too, and none when nothing changed', async () => {
    const iam = iamWithUsers();
    const kinds: string[] = [];
    iam.record(async (changes) => void kinds.push(...changes.map(({ kind }) => kind)));
    await iam.update((draft) => draft.user('ann'));
    await iam.setConfiguration(iam.configuration, caller(1));
    expect(kinds).toEqual(['configuration-changed']);
  });

  it('that fails stops nothing, and a removed recorder gets no more records', async () => {
    const iam = iamWithUsers();
    const heard: unknown[] = [];
    iam.record(() => {
      throw new Error('a bug');
    });
    const remove = iam.record(async (changes) => void heard.push(...changes));
    await iam.update((draft) => draft.deleteUser('ann'));
    remove();
    await iam.update((draft) => draft.deleteUser('bob'));
    expect(heard).toHaveLength(1);
    expect(iam.usernames).toEqual(['boss']);
  });
});
