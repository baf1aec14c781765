/**
 * Trap site of the core.
 *
 * `--use abort=core-as/abort/abort` routes every failed assertion here, so the module needs no import. The position
 * goes into two exported globals that the caller reads after the trap; the strings that AssemblyScript passes are
 * ignored.
 */

/** Source line of the last abort, 0 if none. */
export let abortLine: u32 = 0;

/** Source column of the last abort, 0 if none. */
export let abortColumn: u32 = 0;

export function abort(_message: usize, _file: usize, line: u32, column: u32): void {
  abortLine = line;
  abortColumn = column;
  unreachable();
}

/**
 * The one check that stays in the release build. A broken invariant is a bug of the core: it traps, so that the caller
 * sees one CORE_FAILED instead of silent corruption.
 */
export function abortUnless(holds: bool): void {
  if (!holds) throw new Error('invariant');
}
