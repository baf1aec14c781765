/**
 * The secrets of access control: sealing under the device's key, verifiers, tokens, and a directory that belongs to one
 * key.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { createIamSecrets, Device, demoState, openIam, STATE_FILE } from '../../../device/index.ts';
import { nodeCrypto } from '../../../platform/node/index.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

const [one, other] = [new Device().createPrivateKey(), new Device().createPrivateKey()];
const refused = (code: string) => expect.objectContaining({ code });

describe('a sealed text', () => {
  test.each(['open sesame', '', 'Grüße, 世界', 'x'.repeat(10_000)])('is opened again: %#', async (text) => {
    const sealed = await createIamSecrets(one).seal(text);
    expect(sealed).toMatch(/^v1\.[A-Za-z0-9_-]+$/);
    expect(await createIamSecrets(one).unseal(sealed)).toBe(text);
  });

  test('differs each time', async () => {
    const { seal } = createIamSecrets(one);
    expect(await seal('secret')).not.toBe(await seal('secret'));
  });

  test('is for one device key only', async () => {
    const sealed = await createIamSecrets(one).seal('secret');
    await expect(createIamSecrets(other).unseal(sealed)).rejects.toEqual(refused('INVALID_STATE'));
  });

  test('is refused with any byte changed or cut off', async () => {
    const { seal, unseal } = createIamSecrets(one);
    const bytes = Buffer.from((await seal('secret')).slice('v1.'.length), 'base64url');
    for (let at = 0; at < bytes.length; at++) {
      const damaged = Uint8Array.from(bytes, (byte, index) => (index === at ? byte ^ 1 : byte));
      await expect(unseal(`v1.${Buffer.from(damaged).toString('base64url')}`)).rejects.toEqual(refused('INVALID_STATE'));
      const code = at < 28 ? 'INVALID_ARGUMENT' : 'INVALID_STATE';
      await expect(unseal(`v1.${bytes.subarray(0, at).toString('base64url')}`)).rejects.toEqual(refused(code));
    }
  });

  test.each(['', 'secret', 'v1.', 'v2.AAAA', 'v1.***', `v1.${'A'.repeat(60)}=`])('is refused when it is invalid: %j', async (sealed) => {
    await expect(createIamSecrets(one).unseal(sealed)).rejects.toEqual(refused('INVALID_ARGUMENT'));
  });
});

test('a verifier is scrypt of the password under its own salt', { tags: ['slow'] }, async () => {
  const { makeVerifier } = createIamSecrets(one);
  const [a, b] = [await makeVerifier('secret'), await makeVerifier('secret')];
  expect(a.salt).not.toEqual(b.salt);
  const cost = { N: 16_384, r: 8, p: 1 };
  expect(a).toEqual({ kdf: 1, salt: a.salt, value: await nodeCrypto.scrypt(new TextEncoder().encode('secret'), a.salt, cost, 32) });
});

test('an invalid private key is refused', () => {
  expect(() => createIamSecrets('no key')).toThrow(refused('INVALID_ARGUMENT'));
});

describe('a directory', () => {
  let directory: string;
  beforeEach(() => {
    directory = temporaryDirectory();
  });

  const firstState = async (secrets: ReturnType<typeof createIamSecrets>) => (await demoState(secrets)).state;

  test('begins with the first state, and has its passwords under the same key later', async () => {
    const iam = await openIam(directory, { firstState, secrets: createIamSecrets(one) });
    const password = await iam.openPairingPassword();
    expect(password).toMatch(/^[A-Za-z0-9]{12}$/);
    expect(iam.roles).toContain('Administrator');
    expect(await readFile(join(directory, STATE_FILE), 'utf8')).not.toContain(password);
    expect(await (await openIam(directory, { firstState, secrets: createIamSecrets(one) })).openPairingPassword()).toBe(password);
  });

  test('of another device key is refused and left unchanged', async () => {
    await openIam(directory, { firstState, secrets: createIamSecrets(one) });
    const path = join(directory, STATE_FILE);
    const before = await readFile(path, 'utf8');
    await expect(openIam(directory, { firstState, secrets: createIamSecrets(other) })).rejects.toMatchObject({
      code: 'INVALID_STATE',
      message: expect.stringContaining(path),
    });
    expect(await readFile(path, 'utf8')).toBe(before);
    const { OpenPairingPasswordSealed: _, ...without } = JSON.parse(before);
    await writeFile(path, JSON.stringify(without));
    expect(await (await openIam(directory, { firstState, secrets: createIamSecrets(other) })).openPairingPassword()).toBeUndefined();
  });
});
