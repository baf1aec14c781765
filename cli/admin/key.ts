/** `svc admin key …`: server keys, which let clients reach devices. Kept only as a hash: the key itself is shown once. */
import { Command } from 'commander';
import { addServerKey, checkServerKey, removeServerKey, type ServerKeyRecord, serverKeys } from '../../server/administration/index.ts';
import { collect, id } from '../frame/arguments.ts';
import { argument } from './refusal.ts';
import { type AdminOptions, administer, adminSubcommand, label, printList } from './shared.ts';

/** `svc admin key add|list|remove`. */
export function adminKey(): Command {
  return new Command('key')
    .description('server keys: what a client shows to be connected')
    .addCommand(add())
    .addCommand(list())
    .addCommand(remove());
}

function add(): Command {
  return adminSubcommand('add', 'add a server key and print it; it cannot be shown again')
    .argument('[key]', 'the key, sk- and 16 to 125 letters, digits, - or _; made up when left out', argument(checkServerKey))
    .option('--product <id>', 'only for this product; may be given again. Default: all products of the organization', collect(id))
    .option('--name <name>', 'a friendly name', label)
    .option('--org <id>', 'its organization; not needed while there is only one', id)
    .action((given: string | undefined, options: AdminOptions & { product?: string[]; name?: string }) =>
      administer(options, async (administration, output) => {
        const { org, product, name } = options;
        const added = await addServerKey(administration, { serverKey: given, organizationId: org, productIds: product, name });
        output.result({ ...added.record, serverKey: added.serverKey }, added.serverKey);
      }),
    );
}

function list(): Command {
  return adminSubcommand('list', 'list the server keys, without the keys themselves')
    .option('--org <id>', 'only those of this organization', id)
    .action((options: AdminOptions) =>
      administer(options, async (administration, output) => {
        const line = (each: ServerKeyRecord): string =>
          [each.appId, each.organizationId, each.productIds?.join(' ') ?? 'all products', each.name ?? ''].join('\t');
        printList(output, await serverKeys(administration, options.org), line, 'no server keys');
      }),
    );
}

function remove(): Command {
  return adminSubcommand('remove', 'remove a server key; connections that are open stay')
    .argument('<key>', 'the key (sk-…), or the id that the list shows (ap-…)')
    .action((key: string, options: AdminOptions) =>
      administer(options, async (administration, output) => {
        const appId = await removeServerKey(administration, key);
        output.result({ removed: appId }, `removed ${appId}`);
      }),
    );
}
