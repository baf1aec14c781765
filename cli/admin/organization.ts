/** `svc admin org …`: whom products and keys belong to. One is made by itself at first use; more are for several customers on one station. */
import { Command } from 'commander';
import { newId } from '../../server/admin.ts';
import { id } from '../frame/arguments.ts';
import { CommandError } from '../frame/errors.ts';
import { type AdminOptions, adminSubcommand, expectFound, label, printList, withStore } from './shared.ts';

export function adminOrganization(): Command {
  const add = adminSubcommand('add', 'add an organization')
    .argument('[id]', 'its id; made up when left out', id)
    .option('--name <name>', 'a friendly name', label)
    .action((organizationId: string | undefined, options: AdminOptions & { name?: string }) =>
      withStore(options, async ({ store, output, created }) => {
        const organization = { organizationId: organizationId ?? newId('or'), name: options.name ?? null, created };
        await store.addOrganization(organization);
        output.result(organization, organization.organizationId);
      }),
    );
  const list = adminSubcommand('list', 'list the organizations').action((options: AdminOptions) =>
    withStore(options, async ({ store, output }) => {
      const line = (each: { organizationId: string; name: string | null }): string => [each.organizationId, each.name ?? ''].join('\t');
      printList(output, await store.organizations(), line, 'no organizations');
    }),
  );
  const remove = adminSubcommand('remove', 'remove an organization')
    .argument('<id>', 'organization', id)
    .option('--force', 'with all its products, devices and keys')
    .action((organizationId: string, options: AdminOptions & { force?: boolean }) =>
      withStore(options, async ({ store, output }) => {
        const owned = [
          ...(await store.products(organizationId)),
          ...(await store.apps(organizationId)),
          ...(await store.apiKeys(organizationId)),
        ];
        if (owned.length > 0 && !options.force) {
          throw new CommandError(
            `organization ${organizationId} still has ${owned.length} products and keys: add --force to remove them too`,
          );
        }
        expectFound(await store.removeOrganization(organizationId), `organization ${organizationId}`, 'svc admin org list');
        output.result({ removed: organizationId }, `removed ${organizationId}`);
      }),
    );
  return new Command('org').description('organizations').addCommand(add).addCommand(list).addCommand(remove);
}
