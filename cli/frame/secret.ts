/**
 * A secret given by an option or argument: `-` reads it from standard input, hidden at a terminal; a file option reads
 * it from there. A secret in the arguments is visible to every user who may list the processes of this machine, and
 * stays in the shell's history, so it causes a warning.
 */
import { readSecretLine } from './ask.ts';
import { UsageError } from './errors.ts';
import { readGivenFile } from './given-file.ts';
import type { Output } from './output.ts';

interface GivenSecret {
  /** Its name in messages: "the server key". */
  readonly what: string;
  /** The option or argument that takes it, such as `--server-key`. */
  readonly option: string;
  readonly value: string | undefined;
  /** The option that names a file, where there is one, and its value. */
  readonly fileOption?: string;
  readonly file?: string | undefined;
}

/**
 * Returns the secret; undefined where none is given.
 * @throws UsageError when it is given twice, or empty; CommandError when a file cannot be read
 */
export async function givenSecret({ what, option, value, fileOption, file }: GivenSecret, output: Output): Promise<string | undefined> {
  if (value !== undefined && file !== undefined) throw new UsageError(`${option} and ${fileOption} exclude each other`);
  if (value === '-' || file === '-') return secretFrom('-', what, output);
  if (file !== undefined) return secretFrom(file, what, output);
  if (value === undefined) return undefined;
  const others = fileOption === undefined ? `${option} - and standard input` : `${fileOption}, or ${option} - and standard input`;
  output.warn(`${what} was in the arguments, where other users of this machine can see it: give it with ${others}`);
  return checked(value, what);
}

/**
 * Reads one line from a file, or from standard input for `-`.
 * @throws UsageError when it is empty or longer; CommandError when the file cannot be read
 */
export async function secretFrom(where: string, what: string, output: Output): Promise<string> {
  return checked(await secretText(where, what, output), where === '-' ? `${what} from standard input` : `${what} in ${where}`);
}

/** Reads any text, for a caller with its own check. @throws CommandError when the file cannot be read */
export async function secretText(where: string, what: string, output: Output): Promise<string> {
  if (where === '-') return readSecretLine(question(what), output);
  return new TextDecoder().decode(await readGivenFile(where)).replace(/[\r\n]+$/, '');
}

/** "the server key" as a question: "Server key: ". */
function question(what: string): string {
  const name = what.replace(/^the /, '');
  return `${name[0]?.toUpperCase()}${name.slice(1)}: `;
}

function checked(text: string, what: string): string {
  if (text === '' || /[\r\n]/.test(text)) throw new UsageError(`${what} is ${text === '' ? 'empty' : 'more than one line'}`);
  return text;
}
