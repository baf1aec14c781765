/** What all `svc admin` commands share: their common options, the store, the organization, and how lists are printed. */
import { Command, InvalidArgumentError } from 'commander';
import { hasStore, newId, openSealer, openStore, type Sealer, type Store } from '../../server/admin.ts';
import { CommandError } from '../frame/errors.ts';
import { Output } from '../frame/output.ts';

export interface AdminOptions {
  data: string;
  json?: boolean;
  org?: string;
}

/** What a command's action gets. */
export interface AdminContext {
  readonly store: Store;
  /** What seals keys for the store; its key is made at first use. */
  readonly sealer: () => Promise<Sealer>;
  readonly output: Output;
  /** Of new records: ISO 8601 UTC with milliseconds. */
  readonly created: string;
}

/** A command with --data and --json. Only `add` makes the data of a base station that was never started; the others would hide a misspelt directory. */
export function adminSubcommand(name: string, description: string): Command {
  return new Command(name)
    .description(description)
    .requiredOption('--data <directory>', "the base station's data directory")
    .option('--json', 'print JSON')
    .hook('preAction', (command) => {
      const { data } = command.opts<AdminOptions>();
      if (name !== 'add' && !hasStore(data)) throw new CommandError(`${data} holds no data of a base station: check --data`);
    });
}

/** Opens the store, runs, closes it whatever happens. */
export async function withStore(options: AdminOptions, run: (context: AdminContext) => Promise<void>): Promise<void> {
  const store = await openStore(options.data);
  try {
    await run({
      store,
      sealer: () => openSealer(options.data),
      output: new Output(options.json === true),
      created: new Date().toISOString(),
    });
  } finally {
    await store.close();
  }
}

/** The organization named with --org, else the only one; made when there is none yet. */
export async function organizationOf({ store, created }: AdminContext, options: AdminOptions): Promise<string> {
  if (options.org === undefined) {
    const fresh = { organizationId: newId('or'), name: 'default', created };
    return (await store.defaultOrganization(fresh)).organizationId;
  }
  const organization = await store.organization(options.org);
  if (organization === null) throw new CommandError(`there is no organization ${options.org}: see svc admin org list`);
  return organization.organizationId;
}

/** Fails the command unless something was removed or changed. */
export function expectFound(found: boolean, what: string, list: string): void {
  if (!found) throw new CommandError(`there is no ${what}: see ${list}`);
}

/** Prints records: JSON as one array, else a line each. */
export function printList<Item>(output: Output, items: readonly Item[], line: (item: Item) => string, none: string): void {
  output.result(items, items.length === 0 ? none : items.map(line));
}

/** A free text of 1 to 100 characters without line breaks. */
export function label(text: string): string {
  if (!/^[^\p{Cc}]{1,100}$/u.test(text)) throw new InvalidArgumentError('A name has 1 to 100 characters and no line breaks.');
  return text;
}
