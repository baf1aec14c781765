/**
 * Handles output that cannot be written. Lines for standard error are dropped: a full disk behind it ends no base
 * station and no device. So are those for standard output of a long-running command, also when its reader has ended:
 * Ctrl-C ends the reader of `svc device | cat` as well, and the device has to finish its shutdown. Any other command
 * fails, unless its reader has merely stopped reading: `svc … | head`. A file that is not read to its end is a failure.
 */
export function guardOutput(
  process: Pick<NodeJS.Process, 'stdout' | 'stderr' | 'exit'>,
  { stays, carriesFiles }: { readonly stays: boolean; readonly carriesFiles: boolean },
): void {
  process.stderr.on('error', () => {});
  process.stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
    if (stays) return;
    if (code === 'EPIPE') return process.exit(carriesFiles ? 1 : 0);
    process.stderr.write(`svc: cannot write to standard output: ${message}\n`);
    process.exit(1);
  });
}
