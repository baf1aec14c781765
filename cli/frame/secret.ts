/**
 * A secret that an option or argument takes: `-` reads it from standard input, a file from there. As it is, it is seen by everybody who may list the processes
 * of this machine, and stays in the shell's history: that is warned of.
 */
import { readStandardInput } from './ask.ts';
import { UsageError } from './errors.ts';
import { readGivenFile } from './given-file.ts';
import type { Output } from './output.ts';

export interface GivenSecret {
  /** What it is, in messages: "the server key". */
  readonly what: string;
  /** The option or argument that takes it, such as `--server-key`. */
  readonly option: string;
  readonly value: string | undefined;
  /** The option that names a file, where there is one, and what it was given. */
  readonly fileOption?: string;
  readonly file?: string | undefined;
}

/** The secret; undefined where none is given. @throws UsageError when it is given twice, or empty; CommandError when a file cannot be read */
export async function givenSecret({ what, option, value, fileOption, file }: GivenSecret, output: Output): Promise<string | undefined> {
  if (value !== undefined && file !== undefined) throw new UsageError(`${option} and ${fileOption} exclude each other`);
  if (value === '-' || file === '-') return checked(await readStandardInput(), `${what} from standard input`);
  if (file !== undefined) return checked(new TextDecoder().decode(await readGivenFile(file)).replace(/[\r\n]+$/, ''), `${what} in ${file}`);
  if (value === undefined) return undefined;
  const others = fileOption === undefined ? `${option} - and standard input` : `${fileOption}, or ${option} - and standard input`;
  output.warn(`${what} was in the arguments, where other users of this machine can see it: give it with ${others}`);
  return checked(value, what);
}

function checked(text: string, what: string): string {
  if (text === '' || /[\r\n]/.test(text)) throw new UsageError(`${what} is ${text === '' ? 'empty' : 'more than one line'}`);
  return text;
}
