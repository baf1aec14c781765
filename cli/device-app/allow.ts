/**
 * Who may use a device of `svc device`: clients by the fingerprint of their key. Given as --allow <fingerprint|any|file>, repeatable; a file
 * has one fingerprint per line, `#` begins a comment.
 */
import { readFile } from 'node:fs/promises';
import { isFingerprint } from '../../protocol/identity/index.ts';
import { UsageError } from '../frame/errors.ts';

export interface Allowed {
  /** Everybody who reaches the device. */
  readonly anybody: boolean;
  readonly fingerprints: ReadonlySet<string>;
}

/** @throws UsageError for anything that is neither a fingerprint, nor `any`, nor a readable file of fingerprints */
export async function readAllowed(values: readonly string[]): Promise<Allowed> {
  const fingerprints = new Set<string>();
  for (const value of values) {
    if (value === 'any') continue;
    if (isFingerprint(value.toLowerCase())) fingerprints.add(value.toLowerCase());
    else for (const entry of await readAllowFile(value)) fingerprints.add(entry);
  }
  return { anybody: values.includes('any'), fingerprints };
}

/** Whether a client with this key may use the device. @param fingerprint full hex, lower case */
export function isAllowed(allowed: Allowed, fingerprint: string): boolean {
  return allowed.anybody || allowed.fingerprints.has(fingerprint);
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
    throw new UsageError(`--allow ${path}: neither a fingerprint (64 hexadecimal digits), nor "any", nor a file that can be read`);
  }
}
