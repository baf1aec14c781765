/** The child's side of a bench process: runs the calls of its parent, answers each, and ends with its parent. */

type Call = (argument: never) => unknown;

/**
 * Serves `calls` by name. A call takes one argument and returns a result or a promise. IPC must be able to carry both.
 */
export function serve(calls: Readonly<Record<string, Call>>): void {
  process.on('message', async ({ id, call, argument }: { id: number; call: string; argument: never }) => {
    try {
      process.send?.({ id, result: await calls[call]?.(argument) });
    } catch (error) {
      process.send?.({ id, error: error instanceof Error ? error.message : String(error) });
    }
  });
  process.on('disconnect', () => process.exit(0));
}
