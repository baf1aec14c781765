/**
 * The one check that stays in the release build. A broken invariant is a bug of the core: it traps, so that the caller
 * sees one CORE_FAILED instead of silent corruption.
 */

export function abortUnless(holds: bool): void {
  if (!holds) throw new Error('invariant');
}
