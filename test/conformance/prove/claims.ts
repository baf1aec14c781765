/**
 * What has to be proved: rows that share symbol, kind and test are one claim. Limits are proved as their operations,
 * and aliases as what they stand for.
 */
import type { Row } from '../check.ts';

export interface Claim {
  readonly key: string;
  /** One of its rows; the others are the same under other names. */
  readonly row: Row;
  readonly names: readonly string[];
  readonly file: string;
  readonly title: string;
}

/** The claims of all rows that are done, and of aliases with a test. */
export function claimsOf(rows: readonly Row[]): Claim[] {
  const claims = new Map<string, Claim>();
  for (const row of rows.filter(({ state, test }) => state === 'done' || (state === 'alias' && test !== ''))) {
    const { kind, symbol, path, where, test } = row;
    const key = [kind === 'limit' ? 'operation' : kind, symbol, path, where.join(' '), test].join(' | ');
    const [file = '', title = ''] = test.split(' > ');
    const names = [...(claims.get(key)?.names ?? []), `${row.surface}: ${row.group}: ${row.name}`];
    claims.set(key, { key, row: claims.get(key)?.row ?? row, names, file, title });
  }
  return [...claims.values()];
}
