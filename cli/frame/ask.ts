/** Questions to a person at a terminal, on standard error, so that a pipe carries only results. */
import { once } from 'node:events';
import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import { CommandError, Interrupted } from './errors.ts';
import type { Output } from './output.ts';

/** Whether somebody is there to ask. */
export function canAsk(output: Output): boolean {
  return output.interactive && process.stdin.isTTY === true;
}

/**
 * The answer, without blanks around it; empty at the end of input.
 * @param hidden do not show what is typed
 * @throws Interrupted for Ctrl-C
 */
export async function ask(question: string, { hidden = false } = {}): Promise<string> {
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() });
  const terminal = createInterface({ input: process.stdin, output: hidden ? silent : process.stderr, terminal: true });
  if (hidden) process.stderr.write(question);
  try {
    // The end of input closes the terminal and leaves the question unanswered.
    const closed = once(terminal, 'close').then(() => '');
    return (await Promise.race([terminal.question(hidden ? '' : question), closed])).trim();
  } catch (error) {
    // Ctrl-C does not become a signal while the terminal asks.
    throw (error as Error).name === 'AbortError' ? new Interrupted() : error;
  } finally {
    terminal.close();
    if (hidden) process.stderr.write('\n');
  }
}

/** All of standard input as text, at most 64 KiB, without line ends at its end. */
export async function readStandardInput(): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of process.stdin) {
    chunks.push(chunk as Buffer);
    length += (chunk as Buffer).length;
    if (length > 65_536) throw new CommandError('standard input has more than 64 KiB');
  }
  return Buffer.concat(chunks)
    .toString('utf8')
    .replace(/[\r\n]+$/, '');
}
