/** Words of a command that a program prints: a person pastes the line into a shell, and it runs as it stands. */
import { defaultDataDirectory } from './data-directory.ts';

/** ` --state` with the directory as it was given; empty where it was not. */
export function stateOption(state: string | undefined): string {
  return state === undefined ? '' : ` --state ${shellWord(state)}`;
}

/** ` --data` with the directory, for a command that is printed; empty where it is the default one. */
export function dataOption(party: 'basestation' | 'device', directory: string): string {
  return directory === defaultDataDirectory(party) ? '' : ` --data ${shellWord(directory)}`;
}

/** The word in quotes where a shell would take it apart. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** The operands of a command with its options, quoted where that is needed: after them, behind `--`, where one looks like an option. */
export function commandLine(command: string, operands: readonly string[], options = ''): string {
  const words = operands.map((word) => ` ${shellWord(word)}`).join('');
  return operands.some((word) => word.startsWith('-')) ? `${command}${options} --${words}` : `${command}${words}${options}`;
}
