/**
 * `svc device --allow`: clients made users by the fingerprint of their key, without pairing. The value is a fingerprint
 * or a file, repeatable; a file has one fingerprint per line, `#` begins a comment.
 */
import { readFile } from 'node:fs/promises';
import { isFingerprint } from '../../protocol/identity/index.ts';
import { UsageError } from '../frame/errors.ts';

/**
 * Full hex, lower case.
 * @throws UsageError for a value that is neither a fingerprint nor a readable file of fingerprints
 */
export async function readAllowed(values: readonly string[]): Promise<ReadonlySet<string>> {
  const fingerprints = new Set<string>();
  for (const value of values) {
    if (isFingerprint(value.toLowerCase())) fingerprints.add(value.toLowerCase());
    else for (const entry of await readAllowFile(value)) fingerprints.add(entry);
  }
  return fingerprints;
}

async function readAllowFile(path: string): Promise<string[]> {
  const lines = (await contentOf(path)).split('\n').map((line) => line.replace(/#.*/, '').trim());
  lines.forEach((line, index) => {
    if (line !== '' && !isFingerprint(line.toLowerCase()))
      throw new UsageError(`${path} line ${index + 1}: a fingerprint is 64 hexadecimal digits`);
  });
  return lines.filter((line) => line !== '').map((line) => line.toLowerCase());
}

async function contentOf(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch {
    throw new UsageError(`--allow ${path}: neither a fingerprint (64 hexadecimal digits), nor a file that can be read`);
  }
}
