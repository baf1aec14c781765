/**
 * The interface of a database to the store, besides Kysely's dialect: databases report a broken constraint differently.
 */

/** unique: the key is taken. foreign-key: the referenced row is missing. */
export type Constraint = 'unique' | 'foreign-key';

/** One kind of database behind a `KyselyStore`. */
export interface StoreDialect {
  /** Returns the constraint that made a statement fail; null when it failed for another reason. */
  brokenConstraint(error: unknown): Constraint | null;
}
