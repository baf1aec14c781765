/** What deletes and inserts come to. How a broken constraint is recognised is particular to SQLite. */
import { LocalError } from '../../protocol/errors/index.ts';

/** Runs a delete; false when there was nothing to delete. */
export async function removed(query: { executeTakeFirst(): Promise<{ numDeletedRows: bigint }> }): Promise<boolean> {
  return (await query.executeTakeFirst()).numDeletedRows > 0n;
}

/**
 * Runs an insert and turns a broken constraint into a sentence.
 * @throws LocalError INVALID_STATE when the key is taken, NOT_FOUND when `owner` is missing
 */
export async function adding(what: string, insert: () => Promise<unknown>, owner?: string): Promise<void> {
  try {
    await insert();
  } catch (error) {
    const code = String((error as { code?: unknown }).code);
    if (/PRIMARYKEY|UNIQUE/.test(code)) throw new LocalError('INVALID_STATE', `${what} exists already`);
    if (/FOREIGNKEY/.test(code)) throw new LocalError('NOT_FOUND', `there is no ${owner}`);
    throw error;
  }
}
