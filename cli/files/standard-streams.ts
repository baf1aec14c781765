/** Standard input and output as a file to send or receive. */
import type { Writable } from 'node:stream';
import { blanked } from '../../protocol/printable.ts';
import type { Flow } from './upload.ts';

/** The content of standard input. Must be stopped if it is not read to its end: the process would wait for it. */
export function standardInput(input: NodeJS.ReadStream = process.stdin): Flow {
  // An error passed to `stop` reaches the reader, or is not needed.
  input.on('error', () => {});
  return { pieces: input, stop: (error) => void input.destroy(error instanceof Error ? error : undefined) };
}

/**
 * Writes pieces, each when the one before has been written: unchanged to a pipe; to a terminal without control
 * characters.
 */
export function standardOutput(output: Writable & { isTTY?: boolean } = process.stdout): (piece: Uint8Array) => Promise<void> {
  const decoder = new TextDecoder();
  return (piece) =>
    new Promise((resolve, reject) => {
      const shown = output.isTTY === true ? blanked(decoder.decode(piece, { stream: true }), '\n\t') : piece;
      output.write(shown, (error) => (error ? reject(error) : resolve()));
    });
}
