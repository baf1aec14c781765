/** The private key in a state directory: key.pem. A damaged one is named and never replaced silently. */
import { join } from 'node:path';
import { createFile, prepareDirectory, readFileIfPresent } from '../../platform/node/index.ts';
import { decodePrivateKey } from '../../protocol/identity/index.ts';
import { CommandError } from './errors.ts';

/**
 * PKCS#8 PEM, undefined when there is no such file.
 * @throws CommandError when it holds no private key, LocalError as `readFileIfPresent`
 */
export async function readPrivateKey(directory: string): Promise<string | undefined> {
  const path = join(directory, 'key.pem');
  const bytes = await readFileIfPresent(path);
  if (bytes === undefined) return undefined;
  const pem = new TextDecoder().decode(bytes);
  try {
    decodePrivateKey(pem).fill(0);
  } catch (error) {
    throw new CommandError(`${path}: ${(error as Error).message}: restore it, or move it away to create a new key`);
  }
  return pem;
}

/**
 * PKCS#8 PEM; created at first use, as is the directory.
 * @throws as `readPrivateKey`
 */
export async function privateKeyIn(directory: string, create: () => string): Promise<string> {
  const existing = await readPrivateKey(directory);
  if (existing !== undefined) return existing;
  await prepareDirectory(directory);
  const path = join(directory, 'key.pem');
  const pem = create();
  if (await createFile(path, pem)) return pem;
  // Another process was faster.
  return privateKeyIn(directory, create);
}
