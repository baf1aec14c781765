/** Words of a printed command, so that a person can paste the line into a shell and run it. */
import { defaultDataDirectory } from './data-directory.ts';

/** ` --state` with the directory as it was given; empty where it was not. */
export function stateOption(state: string | undefined): string {
  return state === undefined ? '' : ` --state ${shellWord(state)}`;
}

/** ` --data` with the directory, for a printed command; empty for the default one. */
export function dataOption(party: 'basestation' | 'device', directory: string): string {
  return directory === defaultDataDirectory(party) ? '' : ` --data ${shellWord(directory)}`;
}

/** Quotes a word that a shell would split. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/**
 * A command with its operands and options, quoted if needed. Operands follow after `--` if one looks like an option.
 */
export function commandLine(command: string, operands: readonly string[], options = ''): string {
  const words = operands.map((word) => ` ${shellWord(word)}`).join('');
  return operands.some((word) => word.startsWith('-')) ? `${command}${options} --${words}` : `${command}${words}${options}`;
}
