/** Passwords of the model: where they are kept, and derivations that are slow or fail. */
import { describe, expect, it } from 'vitest';
import { codeOf } from '../../support/code-of.ts';
import { fakeSecrets, iamWithUsers } from './model.ts';

describe('passwords', () => {
  it('are kept as verifier, stay with a renamed user, and are in no record', async () => {
    const iam = iamWithUsers();
    await iam.setUserPassword('ann', 'secret');
    await iam.update((draft) => draft.setUserUsername('ann', 'anna'));
    await iam.update((draft) => draft.setUserDisplayName('anna', 'Anna'));
    expect(await iam.passwordOf('anna')).toMatchObject({ kdf: 1 });
    expect(JSON.stringify(iam.user('anna'))).not.toMatch(/salt|kdf/i);
    await iam.setUserPassword('anna', undefined);
    expect(await iam.passwordOf('anna')).toBeUndefined();
  });

  it('have 4 to 64 bytes, and need a user', async () => {
    const iam = iamWithUsers();
    expect(await codeOf(() => iam.setUserPassword('ann', 'abc'))).toBe('INVALID_ARGUMENT');
    expect(await codeOf(() => iam.setUserPassword('ann', 'é'.repeat(33)))).toBe('INVALID_ARGUMENT');
    expect(await codeOf(() => iam.setUserPassword('ann', 'e\u0308'.repeat(32)))).toBe('OK');
    expect(await codeOf(() => iam.setUserPassword('ann', 'e\u0308'))).toBe('INVALID_ARGUMENT');
    expect(await codeOf(() => iam.setUserPassword('gone', 'secret'))).toBe('NOT_FOUND');
    expect(await codeOf(() => iam.setUserPassword('gone', undefined))).toBe('NOT_FOUND');
  });

  it('for open pairing belong to the empty name, and can be read in clear', async () => {
    const iam = iamWithUsers();
    expect(await iam.passwordOf('')).toBeUndefined();
    await iam.setOpenPairingPassword('open-sesame');
    expect(await iam.passwordOf('')).toEqual({ kdf: 0, password: 'open-sesame' });
    expect(iam.state.openPairingPasswordSealed).toBe('sealed:open-sesame');
    await iam.setOpenPairingPassword('Zoe\u0308\u00a0x');
    expect(await iam.passwordOf('')).toEqual({ kdf: 0, password: 'Zo\u00eb x' });
  });
});

describe('slow passwords', () => {
  /** Secrets whose derivations and seals end when the test says so, and the names of those that run. */
  function slowSecrets() {
    const running = new Map<string, () => void>();
    const slow = (text: string) => new Promise<void>((resolve) => running.set(text, resolve));
    const { makeVerifier, seal, ...others } = fakeSecrets();
    const secrets = {
      ...others,
      makeVerifier: (password: string) => slow(password).then(() => makeVerifier(password)),
      seal: (text: string) => slow(text).then(() => seal(text)),
    };
    const end = async (text: string) => {
      running.get(text)!();
      running.delete(text);
      await new Promise(setImmediate);
    };
    return { secrets, running: () => [...running.keys()], end };
  }

  it('are derived one at a time, and the last one set counts', async () => {
    const { secrets, running, end } = slowSecrets();
    const iam = iamWithUsers({ secrets });
    const all = [iam.setUserPassword('bob', 'first'), iam.setUserPassword('bob', 'second'), iam.setUserPassword('bob', undefined)];
    await new Promise(setImmediate);
    expect(running()).toEqual(['first']);
    await end('first');
    expect(running()).toEqual(['second']);
    expect(iam.hasPassword('bob')).toBe(true);
    await end('second');
    await Promise.all(all);
    expect(iam.hasPassword('bob')).toBe(false);
  });

  it('are awaited by settled', async () => {
    const { secrets, end } = slowSecrets();
    const iam = iamWithUsers({ secrets });
    void iam.setOpenPairingPassword('slow');
    let settled = false;
    const done = iam.settled().then(() => (settled = true));
    await new Promise(setImmediate);
    expect(settled).toBe(false);
    await end('slow');
    await done;
    expect(await iam.openPairingPassword()).toBe('slow');
  });

  it('do not block others when one fails', async () => {
    const { makeVerifier, ...others } = fakeSecrets();
    let fails = true;
    const secrets = {
      ...others,
      makeVerifier: async (password: string) => (fails ? Promise.reject(new Error('no memory')) : makeVerifier(password)),
    };
    const iam = iamWithUsers({ secrets });
    await expect(iam.setUserPassword('bob', 'secret')).rejects.toThrow('no memory');
    fails = false;
    await iam.setUserPassword('bob', 'secret');
    expect(iam.hasPassword('bob')).toBe(true);
  });
});
