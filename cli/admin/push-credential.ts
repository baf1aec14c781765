/**
 * `svc admin push-credential …`: service accounts of the push provider, one per project of an organization. The private
 * key is stored sealed.
 */
import { Command } from 'commander';
import { readJson } from '../../platform/node/index.ts';
import {
  addPushCredential,
  checkProviderUrl,
  PROVIDER_URL,
  type PushCredentialRecord,
  pushCredentials,
  removePushCredential,
} from '../../server/administration/index.ts';
import { id } from '../frame/arguments.ts';
import { readStandardInput } from '../frame/ask.ts';
import { CommandError } from '../frame/errors.ts';
import { argument } from './refusal.ts';
import { type AdminOptions, administer, adminSubcommand, printTable } from './shared.ts';

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
    .argument('<file>', "the service account's JSON file, - for standard input")
    .option('--base-url <url>', "base URL of the provider's HTTP v1 interface", argument(checkProviderUrl), PROVIDER_URL)
    .option('--org <id>', 'its organization; not needed while there is only one', id)
    .action((file: string, options: AdminOptions & { baseUrl: string }) =>
      administer(options, async (administration, output) => {
        const account = file === '-' ? parsed(await readStandardInput()) : await readJson(file, { given: true });
        if (account === undefined) throw new CommandError(`${file}: no such file or directory`);
        const { baseUrl, org } = options;
        const record = await addPushCredential(administration, { account, baseUrl, organizationId: org });
        output.result(record, record.projectId);
      }),
    );
}

function list(): Command {
  return adminSubcommand('list', 'list the push credentials, without their keys')
    .option('--org <id>', 'only those of this organization', id)
    .action((options: AdminOptions) =>
      administer(options, async (administration, output) => {
        const row = ({ projectId, organizationId, clientEmail, baseUrl }: PushCredentialRecord) => [
          projectId,
          organizationId,
          clientEmail,
          baseUrl,
        ];
        const headings = ['project', 'organization', 'account', 'provider'];
        printTable(output, await pushCredentials(administration, options.org), { headings, row, none: 'no push credentials' });
      }),
    );
}

function remove(): Command {
  return adminSubcommand('remove', 'remove a push credential; takes effect at the next notification')
    .argument('<project>', 'project id at the provider')
    .option('--org <id>', 'its organization; not needed while there is only one', id)
    .action((projectId: string, options: AdminOptions) =>
      administer(options, async (administration, output) => {
        await removePushCredential(administration, { projectId, organizationId: options.org });
        output.result({ removed: projectId }, `removed ${projectId}`);
      }),
    );
}

/** @throws CommandError for text that is not JSON */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new CommandError('standard input is not JSON');
  }
}
