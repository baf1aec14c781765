/**
 * Trap site of the core.
 *
 * `--use abort=core-as/abort/abort` routes every failed assertion here, so the module needs no import. The place is left in two
 * exported globals that the host reads after the trap; the strings AssemblyScript passes are not touched.
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
