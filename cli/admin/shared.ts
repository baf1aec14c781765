/** Common parts of all `svc admin` commands: their options, the store they open, and how lists are printed. */
import { Command } from 'commander';
import { nodeCrypto } from '../../platform/node/index.ts';
import { type Administration, checkName, hasStore, openSealer, openStore } from '../../server/administration/index.ts';
import { defaultDataDirectory } from '../frame/data-directory.ts';
import { CommandError } from '../frame/errors.ts';
import { Output } from '../frame/output.ts';
import { dataOption } from '../frame/shell-word.ts';
import { table } from '../frame/table.ts';
import { argument, refusing } from './refusal.ts';

const ABSENT = 'start one with svc basestation, or name its directory with --data';

export interface AdminOptions {
  data: string;
  json?: boolean;
  org?: string;
}

/**
 * A command with --data and --json. Only `add` creates the data of a base station that was never started; other
 * commands would hide a misspelt directory.
 */
export function adminSubcommand(name: string, description: string): Command {
  return new Command(name)
    .description(description)
    .option('--data <directory>', "the base station's data directory", defaultDataDirectory('basestation'))
    .option('--json', 'print JSON')
    .hook('preAction', (command) => {
      const { data } = command.opts<AdminOptions>();
      if (name !== 'add' && !hasStore(data)) throw new CommandError(`${data} has no data of a base station: ${ABSENT}`);
    });
}

/** Opens the store, runs, and always closes it. A refusal becomes an error of the command. */
export async function administer(
  options: AdminOptions,
  run: (administration: Administration, output: Output) => Promise<void>,
): Promise<void> {
  const store = await openStore(options.data);
  const administration: Administration = {
    store,
    sealer: () => openSealer(options.data),
    wallTime: () => Date.now(),
    randomBytes: (length) => nodeCrypto.randomBytes(length),
  };
  try {
    await refusing(() => run(administration, new Output(options.json === true)), dataOption('basestation', options.data));
  } finally {
    await store.close();
  }
}

/** Prints records: JSON as one array, else a table. @param none text where there are no records */
export function printTable<Item>(
  output: Output,
  items: readonly Item[],
  { headings, row, none }: { headings: readonly string[]; row: (item: Item) => readonly (string | undefined)[]; none: string },
): void {
  output.result(items, items.length === 0 ? none : table(headings, items.map(row)));
}

/** A free text of 1 to 100 characters without line breaks. */
export const label = argument(checkName);
