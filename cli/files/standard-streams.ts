/** Standard input and output as a file that is sent or received. */
import type { Writable } from 'node:stream';
import { blanked } from '../../protocol/printable.ts';
import type { Flow } from './upload.ts';

/** What comes on standard input. To be stopped when it is not wanted to its end: the process would wait for it. */
export function standardInput(input: NodeJS.ReadStream = process.stdin): Flow {
  // An error that `stop` gives finds a reader, or nobody waits for it.
  input.on('error', () => {});
  return { pieces: input, stop: (error) => void input.destroy(error instanceof Error ? error : undefined) };
}

/** Writes pieces, each when the one before has left: as they come for a pipe; for a terminal without what could rewrite what that shows. */
export function standardOutput(output: Writable & { isTTY?: boolean } = process.stdout): (piece: Uint8Array) => Promise<void> {
  const decoder = new TextDecoder();
  return (piece) =>
    new Promise((resolve, reject) => {
      const shown = output.isTTY === true ? blanked(decoder.decode(piece, { stream: true }), '\n\t') : piece;
      output.write(shown, (error) => (error ? reject(error) : resolve()));
    });
}
