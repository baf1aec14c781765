/**
 * What the store asks of a database besides Kysely's dialect: how it says that a constraint is broken differs from one
 * to the next.
 */

/** unique: the key is taken. foreign-key: the row it refers to is missing. */
export type Constraint = 'unique' | 'foreign-key';

/** One kind of database behind a `KyselyStore`. */
export interface StoreDialect {
  /** The constraint that made a statement fail; null when it failed for another reason. */
  brokenConstraint(error: unknown): Constraint | null;
}
