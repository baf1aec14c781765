/** Questions to a person at a terminal, on standard error, so that a pipe carries only results. */
import { once } from 'node:events';
import { createInterface } from 'node:readline/promises';
import { type Readable, Writable } from 'node:stream';
import { CommandError, Interrupted } from './errors.ts';
import type { Output } from './output.ts';

/** Whether a person can be asked. */
export function canAsk(output: Output): boolean {
  return output.interactive && process.stdin.isTTY === true;
}

export interface AskOptions {
  /** Hides what is typed; the answer is then returned unchanged, with its blanks. */
  readonly hidden?: boolean;
  /** The terminal; default standard input and standard error. */
  readonly input?: Readable;
  readonly output?: Writable;
}

/** Returns the answer, without surrounding blanks; empty at the end of input. @throws Interrupted for Ctrl-C */
export async function ask(
  question: string,
  { hidden = false, input = process.stdin, output = process.stderr }: AskOptions = {},
): Promise<string> {
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() });
  const terminal = createInterface({ input, output: hidden ? silent : output, terminal: true, historySize: 0 });
  if (hidden) output.write(question);
  // Ctrl-C does not become a signal while the terminal asks.
  const interrupted = once(terminal, 'SIGINT').then(() => Promise.reject(new Interrupted()));
  // The end of input closes the terminal; then some versions of Node leave the question unanswered, others abort it.
  const ended = once(terminal, 'close').then(() => '');
  const answered = terminal.question(hidden ? '' : question).catch(() => '');
  try {
    const answer = await Promise.race([answered, ended, interrupted]);
    return hidden ? answer : answer.trim();
  } finally {
    terminal.close();
    if (hidden) output.write('\n');
  }
}

/** Lines of a secret that is pasted. */
const MAX_LINES = 16;

/**
 * Reads a secret given as `-`: typed or pasted at a terminal, hidden, else all of standard input.
 * @param isWhole whether lines at a terminal are complete: otherwise the shell would get the rest of a paste after its
 *   first line
 */
export async function readSecretLine(question: string, output: Output, isWhole?: (text: string) => boolean): Promise<string> {
  if (!canAsk(output)) return readStandardInput();
  return isWhole === undefined ? ask(question, { hidden: true }) : askLines(question, isWhole);
}

/** Reads hidden lines until they are complete, one is empty, or there are 16. @throws Interrupted for Ctrl-C */
export async function askLines(
  question: string,
  isWhole: (text: string) => boolean,
  { input = process.stdin, output = process.stderr }: Pick<AskOptions, 'input' | 'output'> = {},
): Promise<string> {
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() });
  const terminal = createInterface({ input, output: silent, terminal: true, historySize: 0 });
  const lines: string[] = [];
  output.write(question);
  try {
    await new Promise<void>((resolve, reject) => {
      const look = (): void => {
        if (lines.length >= MAX_LINES || lines.at(-1)?.trim() === '' || isWhole(lines.join('\n'))) resolve();
        else output.write('\nThis is not all of it. Paste the rest, or press Enter to end: ');
      };
      let looking: NodeJS.Immediate | undefined;
      terminal.on('line', (line) => {
        lines.push(line);
        // The lines of one paste follow each other immediately.
        clearImmediate(looking);
        looking = setImmediate(look);
      });
      terminal.once('SIGINT', () => reject(new Interrupted()));
      terminal.once('close', () => resolve());
    });
    return lines.join('\n').replace(/\n+$/, '');
  } finally {
    terminal.close();
    output.write('\n');
  }
}

/** Reads all of standard input as text, at most 64 KiB, without trailing line ends. */
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
