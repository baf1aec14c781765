/** A key generated ahead is one of the platform's, and returned once. */
import { expect, it } from 'vitest';
import { nodeCrypto } from '../../../platform/node/crypto.ts';
import { withKeyAhead } from '../../../platform/node/key-ahead.ts';

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

it('has the next key ready a turn later and never returns one twice', async () => {
  let made = 0;
  const crypto = withKeyAhead({
    ...nodeCrypto,
    generateKey: () => {
      made++;
      return nodeCrypto.generateKey();
    },
  });
  const keys = [crypto.generateKey(), crypto.generateKey()];
  expect(made).toBe(2);
  await turn();
  expect(made).toBe(3);
  keys.push(crypto.generateKey());
  expect(made).toBe(3);
  await turn();
  expect(made).toBe(4);
  keys.push(crypto.generateKey(), crypto.generateKey());
  expect(new Set(keys.map(({ publicKey }) => Buffer.from(publicKey).toString('hex'))).size).toBe(5);
});
