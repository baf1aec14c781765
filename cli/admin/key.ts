/** `svc admin key …`: server keys, which let clients reach devices. Kept only as a hash: the key itself is shown once. */
import { Command, InvalidArgumentError } from 'commander';
import { type App, hashSecret, isServerKey, newId, newServerKey } from '../../server/admin.ts';
import { collect, id } from '../frame/arguments.ts';
import {
  type AdminContext,
  type AdminOptions,
  adminSubcommand,
  expectFound,
  label,
  organizationOf,
  printList,
  withStore,
} from './shared.ts';

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
    .argument('[key]', 'the key, sk- and 16 to 125 letters, digits, - or _; made up when left out', serverKey)
    .option('--product <id>', 'only for this product; may be given again. Default: all products of the organization', collect(id))
    .option('--name <name>', 'a friendly name', label)
    .option('--org <id>', 'its organization; not needed while there is only one', id)
    .action((given: string | undefined, options: AdminOptions & { product?: string[]; name?: string }) =>
      withStore(options, async (context) => {
        const key = given ?? newServerKey();
        const app = await newApp(context, options, hashSecret(key));
        await context.store.addApp(app);
        context.output.result({ ...shown(app), serverKey: key }, key);
      }),
    );
}

async function newApp(context: AdminContext, options: AdminOptions & { product?: string[]; name?: string }, keyHash: string): Promise<App> {
  return {
    appId: newId('ap'),
    organizationId: await organizationOf(context, options),
    name: options.name ?? null,
    authType: 'NONE',
    keyHash,
    productIds: options.product ?? null,
    created: context.created,
  };
}

function list(): Command {
  return adminSubcommand('list', 'list the server keys, without the keys themselves')
    .option('--org <id>', 'only those of this organization', id)
    .action((options: AdminOptions) =>
      withStore(options, async ({ store, output }) => {
        const line = (each: ReturnType<typeof shown>): string =>
          [each.appId, each.organizationId, each.productIds?.join(' ') ?? 'all products', each.name ?? ''].join('\t');
        printList(output, (await store.apps(options.org)).map(shown), line, 'no server keys');
      }),
    );
}

function remove(): Command {
  return adminSubcommand('remove', 'remove a server key; connections that are open stay')
    .argument('<key>', 'the key (sk-…), or the id that the list shows (ap-…)')
    .action((key: string, options: AdminOptions) =>
      withStore(options, async ({ store, output }) => {
        const appId = (await store.appByKey(hashSecret(key)))?.appId ?? key;
        expectFound(await store.removeApp(appId), 'such server key', 'svc admin key list');
        output.result({ removed: appId }, `removed ${appId}`);
      }),
    );
}

function shown({ keyHash: _, ...app }: App): Omit<App, 'keyHash'> {
  return app;
}

function serverKey(text: string): string {
  if (!isServerKey(text)) throw new InvalidArgumentError('A server key is sk- and 16 to 125 letters, digits, "-" or "_".');
  return text;
}
