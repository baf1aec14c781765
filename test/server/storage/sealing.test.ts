/** Secrets that must be recoverable are sealed for one record under the data directory's key. */
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { openSealer, Sealer } from '../../../server/storage/sealing.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

let directory: string;
beforeEach(() => {
  directory = temporaryDirectory();
});

const refused = { code: 'INVALID_STATE' };

test('a sealed secret opens only for its record, only under its key, and only unchanged', () => {
  const sealer = new Sealer(new Uint8Array(32));
  const sealed = sealer.seal('grüße', 'service se-1');
  expect(sealed).not.toBe(sealer.seal('grüße', 'service se-1'));
  expect(sealer.open(sealed, 'service se-1')).toBe('grüße');
  const attempts: [Sealer, string, string][] = [
    [sealer, sealed, 'service se-2'],
    [new Sealer(new Uint8Array(32).fill(1)), sealed, 'service se-1'],
    [sealer, '', 'service se-1'],
    [sealer, sealed.slice(0, 10), 'service se-1'],
    [sealer, `${sealed[0] === 'A' ? 'B' : 'A'}${sealed.slice(1)}`, 'service se-1'],
  ];
  for (const [by, text, record] of attempts) expect(() => by.open(text, record)).toThrow(expect.objectContaining(refused));
});

test('the key is made once, for this user only, also for two parallel callers', async () => {
  const [one, other] = await Promise.all([openSealer(directory), openSealer(directory)]);
  expect(other.open(one.seal('x', 'r'), 'r')).toBe('x');
  expect(statSync(join(directory, 'outbound.key')).mode & 0o777).toBe(0o600);
  expect(readFileSync(join(directory, 'outbound.key'), 'utf8')).toMatch(/^[0-9a-f]{64}\n$/);
});

test('a damaged key is refused with its name', async () => {
  const file = join(directory, 'outbound.key');
  writeFileSync(file, 'abc');
  await expect(openSealer(directory)).rejects.toMatchObject({ ...refused, message: expect.stringContaining(file) });
});
