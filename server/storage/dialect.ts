/**
 * The interface of a database to the store, besides Kysely's dialect: databases report a broken constraint differently.
 * Results of deletes and inserts.
 */
import { LocalError } from '../../protocol/errors/index.ts';

/** unique: the key is taken. foreign-key: the referenced row is missing. */
export type Constraint = 'unique' | 'foreign-key';

/** One kind of database behind a `KyselyStore`. */
export interface StoreDialect {
  /** Returns the constraint that made a statement fail; null when it failed for another reason. */
  brokenConstraint(error: unknown): Constraint | null;
}

/** Runs a delete; returns false when there was nothing to delete. */
export async function removed(query: { executeTakeFirst(): Promise<{ numDeletedRows: bigint }> }): Promise<boolean> {
  return (await query.executeTakeFirst()).numDeletedRows > 0n;
}

/**
 * Runs an insert and turns a broken constraint into a sentence.
 * @param what the record, for the sentence
 * @param owner what it belongs to
 * @throws LocalError INVALID_STATE when the key is taken, NOT_FOUND when `owner` is missing; any other error unchanged
 */
export async function adding(dialect: StoreDialect, what: string, insert: () => Promise<unknown>, owner?: string): Promise<void> {
  try {
    await insert();
  } catch (error) {
    const constraint = dialect.brokenConstraint(error);
    if (constraint === 'unique') throw new LocalError('INVALID_STATE', `${what} exists already`);
    if (constraint === 'foreign-key') throw new LocalError('NOT_FOUND', `there is no ${owner}`);
    throw error;
  }
}
