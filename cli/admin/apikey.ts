/** `svc admin apikey …`: keys of the REST interface. The secret is shown once and kept only as a hash. */
import { Command, InvalidArgumentError } from 'commander';
import {
  type ApiKey,
  addApiKey,
  admitsNoAddress,
  checkAction,
  isIpEntry,
  type NewApiKey,
  removeApiKey,
} from '../../server/administration/index.ts';
import { collect, id } from '../frame/arguments.ts';
import { argument } from './refusal.ts';
import { type AdminOptions, administer, adminSubcommand, label, printTable } from './shared.ts';

interface AddOptions extends AdminOptions {
  name?: string;
  action?: string[];
  ip?: { ip: string; name?: string }[];
  enforceIp?: boolean;
  admin?: boolean;
}

/** `svc admin apikey add|list|remove`. */
export function adminApiKey(): Command {
  return new Command('apikey').description('API keys of the REST interface').addCommand(add()).addCommand(list()).addCommand(remove());
}

function add(): Command {
  return adminSubcommand('add', 'add an API key and print its secret; it cannot be shown again')
    .argument('[id]', 'its id; made up when left out', id)
    .option('--name <name>', 'a friendly name', label)
    .option('--action <action>', 'an action it grants, for example svc:read; may be given again', collect(argument(checkAction)))
    .option('--ip <address[=name]>', 'an address or CIDR prefix of its allow list; may be given again', collect(ipEntry))
    .option('--enforce-ip', 'refuse the key from any other address')
    .option('--admin', 'give it administrator rights')
    .option('--org <id>', 'its organization; not needed while there is only one', id)
    .action((apikeyId: string | undefined, options: AddOptions) =>
      administer(options, async (administration, output) => {
        const { record, secret } = await addApiKey(administration, newApiKey(apikeyId, options));
        if (admitsNoAddress(record)) output.warn('the list is enforced and empty: nobody can use this key');
        output.result({ ...record, secret }, secret);
      }),
    );
}

function newApiKey(apikeyId: string | undefined, { org, name, action, ip, enforceIp, admin }: AddOptions): NewApiKey {
  return { apikeyId, organizationId: org, name, actions: action, ipWhiteList: ip, enforceIpWhitelist: enforceIp, isAdmin: admin };
}

function list(): Command {
  return adminSubcommand('list', 'list the API keys, without their secrets')
    .option('--org <id>', 'only those of this organization', id)
    .action((options: AdminOptions) =>
      administer(options, async ({ store }, output) => {
        const row = (each: ApiKey) => {
          const addresses = each.enforceIpWhitelist ? each.ipWhiteList.map(({ ip }) => ip).join(' ') || 'no address' : 'any address';
          return [each.apikeyId, each.organizationId, each.name, each.actions.join(' ') || 'no actions', addresses];
        };
        const headings = ['key', 'organization', 'name', 'actions', 'from'];
        printTable(output, await store.apiKeys(options.org), { headings, row, none: 'no API keys' });
      }),
    );
}

function remove(): Command {
  return adminSubcommand('remove', 'remove an API key; counts from the next request')
    .argument('<id>', 'API key', id)
    .action((apikeyId: string, options: AdminOptions) =>
      administer(options, async (administration, output) => {
        await removeApiKey(administration, apikeyId);
        output.result({ removed: apikeyId }, `removed ${apikeyId}`);
      }),
    );
}

function ipEntry(text: string): { ip: string; name?: string } {
  const [ip = '', ...name] = text.split('=');
  if (!isIpEntry(ip))
    throw new InvalidArgumentError('Expected an IPv4 or IPv6 address or prefix, for example 192.0.2.0/24 or 2001:db8::1=office.');
  return name.length === 0 ? { ip } : { ip, name: label(name.join('=')) };
}
