/** `svc admin org …`: whom products and keys belong to. One is made by itself at first use; more are for several customers on one station. */
import { Command } from 'commander';
import { addOrganization, type Organization, removeOrganization } from '../../server/administration/index.ts';
import { id } from '../frame/arguments.ts';
import { type AdminOptions, administer, adminSubcommand, label, printTable } from './shared.ts';

/** `svc admin org add|list|remove`. */
export function adminOrganization(): Command {
  return new Command('org').description('organizations').addCommand(add()).addCommand(list()).addCommand(remove());
}

function add(): Command {
  return adminSubcommand('add', 'add an organization')
    .argument('[id]', 'its id; made up when left out', id)
    .option('--name <name>', 'a friendly name', label)
    .action((organizationId: string | undefined, options: AdminOptions & { name?: string }) =>
      administer(options, async (administration, output) => {
        const organization = await addOrganization(administration, { organizationId, name: options.name });
        output.result(organization, organization.organizationId);
      }),
    );
}

function list(): Command {
  return adminSubcommand('list', 'list the organizations').action((options: AdminOptions) =>
    administer(options, async ({ store }, output) => {
      const row = ({ organizationId, name }: Organization) => [organizationId, name ?? undefined];
      printTable(output, await store.organizations(), { headings: ['organization', 'name'], row, none: 'no organizations' });
    }),
  );
}

function remove(): Command {
  return adminSubcommand('remove', 'remove an organization')
    .argument('<id>', 'organization', id)
    .option('--force', 'with all its products, devices and keys')
    .action((organizationId: string, options: AdminOptions & { force?: boolean }) =>
      administer(options, async (administration, output) => {
        await removeOrganization(administration, organizationId, options.force);
        output.result({ removed: organizationId }, `removed ${organizationId}`);
      }),
    );
}
