/** `svc admin org …`: whom products and keys belong to. One is made by itself at first use; more are for several customers on one station. */
import { Command } from 'commander';
import { newId, type Organization } from '../../server/admin.ts';
import { id } from '../frame/arguments.ts';
import { CommandError } from '../frame/errors.ts';
import { type AdminOptions, adminSubcommand, expectFound, label, printList, withStore } from './shared.ts';

/** `svc admin org add|list|remove`. */
export function adminOrganization(): Command {
  return new Command('org').description('organizations').addCommand(add()).addCommand(list()).addCommand(remove());
}

function add(): Command {
  return adminSubcommand('add', 'add an organization')
    .argument('[id]', 'its id; made up when left out', id)
    .option('--name <name>', 'a friendly name', label)
    .action((organizationId: string | undefined, options: AdminOptions & { name?: string }) =>
      withStore(options, async ({ store, output, created }) => {
        const organization = { organizationId: organizationId ?? newId('or'), name: options.name ?? null, created };
        await store.addOrganization(organization);
        output.result(organization, organization.organizationId);
      }),
    );
}

function list(): Command {
  return adminSubcommand('list', 'list the organizations').action((options: AdminOptions) =>
    withStore(options, async ({ store, output }) => {
      const line = (each: Organization): string => [each.organizationId, each.name ?? ''].join('\t');
      printList(output, await store.organizations(), line, 'no organizations');
    }),
  );
}

function remove(): Command {
  return adminSubcommand('remove', 'remove an organization')
    .argument('<id>', 'organization', id)
    .option('--force', 'with all its products, devices and keys')
    .action((organizationId: string, options: AdminOptions & { force?: boolean }) =>
      withStore(options, async ({ store, output }) => {
        const owned = (
          await Promise.all([
            store.products(organizationId),
            store.apps(organizationId),
            store.apiKeys(organizationId),
            store.outbound.pushCredentials(organizationId),
            store.outbound.services(organizationId),
          ])
        ).flat().length;
        if (owned > 0 && !options.force) {
          throw new CommandError(
            `organization ${organizationId} still has ${owned} products, keys and services: add --force to remove them too`,
          );
        }
        expectFound(await store.removeOrganization(organizationId), `organization ${organizationId}`, 'svc admin org list');
        output.result({ removed: organizationId }, `removed ${organizationId}`);
      }),
    );
}
