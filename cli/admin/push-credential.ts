/** `svc admin push-credential …`: service accounts of the push provider, one for each project of an organization. The private key is kept sealed. */
import { Command, InvalidArgumentError } from 'commander';
import { credentialRecord, isProviderUrl, PROVIDER_URL, type PushCredential, parseServiceAccount } from '../../server/admin.ts';
import { readJson } from '../../transport/node/index.ts';
import { id } from '../frame/arguments.ts';
import { CommandError } from '../frame/errors.ts';
import { type AdminOptions, adminSubcommand, expectFound, organizationOf, printList, withStore } from './shared.ts';

/** `svc admin push-credential add|list|remove`. */
export function adminPushCredential(): Command {
  return new Command('push-credential')
    .description('service accounts for push notifications')
    .addCommand(add())
    .addCommand(list())
    .addCommand(remove());
}

function add(): Command {
  return adminSubcommand(
    'add',
    "add a service account of the push provider; devices of the organization may then push to the account's project",
  )
    .argument('<file>', "the service account's JSON file")
    .option('--base-url <url>', "where the provider's HTTP v1 interface is", baseUrl, PROVIDER_URL)
    .option('--org <id>', 'its organization; not needed while there is only one', id)
    .action((file: string, options: AdminOptions & { baseUrl: string }) =>
      withStore(options, async (context) => {
        const json = await readJson(file);
        if (json === undefined) throw new CommandError(`${file}: no such file or directory`);
        const { privateKey, ...account } = parseServiceAccount(json);
        const organizationId = await organizationOf(context, options);
        const record = { ...account, organizationId, baseUrl: options.baseUrl, created: context.created };
        const sealedKey = (await context.sealer()).seal(privateKey, credentialRecord(record));
        await context.store.outbound.addPushCredential({ ...record, sealedKey });
        context.output.result(record, record.projectId);
      }),
    );
}

function list(): Command {
  return adminSubcommand('list', 'list the push credentials, without their keys')
    .option('--org <id>', 'only those of this organization', id)
    .action((options: AdminOptions) =>
      withStore(options, async ({ store, output }) => {
        const line = (each: ReturnType<typeof shown>): string =>
          [each.projectId, each.organizationId, each.clientEmail, each.baseUrl].join('\t');
        printList(output, (await store.outbound.pushCredentials(options.org)).map(shown), line, 'no push credentials');
      }),
    );
}

function remove(): Command {
  return adminSubcommand('remove', 'remove a push credential; counts from the next notification')
    .argument('<project>', 'project id at the provider')
    .option('--org <id>', 'its organization; not needed while there is only one', id)
    .action((projectId: string, options: AdminOptions) =>
      withStore(options, async (context) => {
        const organizationId = await organizationOf(context, options);
        const found = await context.store.outbound.removePushCredential(organizationId, projectId);
        expectFound(found, `push credential of project ${projectId}`, 'svc admin push-credential list');
        context.output.result({ removed: projectId }, `removed ${projectId}`);
      }),
    );
}

function shown({ sealedKey: _, ...credential }: PushCredential): Omit<PushCredential, 'sealedKey'> {
  return credential;
}

function baseUrl(text: string): string {
  if (!isProviderUrl(text)) throw new InvalidArgumentError('Expected an https URL (http only on this machine).');
  return text.replace(/\/+$/, '');
}
