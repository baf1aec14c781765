/**
 * Source of a command's password. Every user who may list the processes of this machine sees an argument, and it stays
 * in the shell's history: so no option takes a password, only a file, standard input and the environment.
 */
import type { Command } from 'commander';
import type { Output } from './output.ts';
import { secretFrom } from './secret.ts';

export interface PasswordOptions {
  passwordFile?: string;
}

/** Adds the option. */
export function withPassword(command: Command, description = 'file with the password, - for standard input'): Command {
  return command.option('--password-file <file>', description);
}

/** The password, if one is given. @throws as `secretFrom` */
export async function givenPassword({ passwordFile }: PasswordOptions, output: Output): Promise<string | undefined> {
  return passwordFile === undefined ? undefined : secretFrom(passwordFile, 'the password', output);
}

/** Warns of a password that was part of an argument. */
export function warnOfArgument(output: Output, remedy: string): void {
  output.warn(`the password was in the arguments, where other users of this machine can see it: ${remedy}`);
}
