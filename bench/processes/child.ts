/** The child's side of a bench process: runs the calls its parent sends, answers each, and ends with its parent. */

type Call = (argument: never) => unknown;

/** Serves `calls` by name. A call gets one argument and gives a result or a promise; both must be what IPC can carry. */
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
