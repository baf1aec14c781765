/**
 * Where a command gets a password from. An argument is seen by everybody who may list the processes of this machine and stays in the shell's
 * history: so there is no option that takes one, only a file, standard input and the environment.
 */
import type { Command } from 'commander';
import { readStandardInput } from './ask.ts';
import { UsageError } from './errors.ts';
import { readGivenFile } from './given-file.ts';
import type { Output } from './output.ts';

export interface PasswordOptions {
  passwordFile?: string;
}

/** Adds the option. */
export function withPassword(command: Command, description = 'file with the password, - for standard input'): Command {
  return command.option('--password-file <file>', description);
}

/** The password, if one is given. @throws UsageError when it is empty */
export async function givenPassword({ passwordFile }: PasswordOptions): Promise<string | undefined> {
  if (passwordFile === undefined) return undefined;
  const text =
    passwordFile === '-' ? await readStandardInput() : new TextDecoder().decode(await readGivenFile(passwordFile)).replace(/[\r\n]+$/, '');
  if (text === '') throw new UsageError(`the password ${passwordFile === '-' ? 'from standard input' : `in ${passwordFile}`} is empty`);
  return text;
}

/** For a password that was part of an argument. */
export function warnOfArgument(output: Output, remedy: string): void {
  output.warn(`the password was in the arguments, where other users of this machine can see it: ${remedy}`);
}
