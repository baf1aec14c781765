/** The private key in a state directory. A damaged one is named and never replaced silently. */
import { decodePrivateKey } from '../../protocol/identity/index.ts';
import { readFileIfPresent } from '../../transport/node/index.ts';
import { CommandError } from './errors.ts';

/**
 * PKCS#8 PEM, undefined when there is no such file.
 * @throws CommandError when it holds no private key, LocalError when it cannot be read
 */
export async function readPrivateKey(path: string): Promise<string | undefined> {
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
