/** `svc admin product …`: kinds of devices, to which devices and keys belong. */
import { Command } from 'commander';
import { newId, type Product } from '../../server/admin.ts';
import { id } from '../frame/arguments.ts';
import { CommandError } from '../frame/errors.ts';
import { type AdminOptions, adminSubcommand, expectFound, label, organizationOf, printList, withStore } from './shared.ts';

/** `svc admin product add|list|remove`. */
export function adminProduct(): Command {
  return new Command('product').description('products').addCommand(add()).addCommand(list()).addCommand(remove());
}

function add(): Command {
  return adminSubcommand('add', 'add a product')
    .argument('[id]', 'its id; made up when left out', id)
    .option('--name <name>', 'a friendly name', label)
    .option('--org <id>', 'its organization; not needed while there is only one', id)
    .action((productId: string | undefined, options: AdminOptions & { name?: string }) =>
      withStore(options, async (context) => {
        const organizationId = await organizationOf(context, options);
        const product = { productId: productId ?? newId('pr'), organizationId, name: options.name ?? null, created: context.created };
        await context.store.addProduct(product);
        context.output.result(product, product.productId);
      }),
    );
}

function list(): Command {
  return adminSubcommand('list', 'list the products')
    .option('--org <id>', 'only those of this organization', id)
    .action((options: AdminOptions) =>
      withStore(options, async ({ store, output }) => {
        const line = (each: Product): string => [each.productId, each.organizationId, each.name ?? ''].join('\t');
        printList(output, await store.products(options.org), line, 'no products');
      }),
    );
}

function remove(): Command {
  return adminSubcommand('remove', 'remove a product')
    .argument('<id>', 'product', id)
    .option('--force', 'with all its devices')
    .action((productId: string, options: AdminOptions & { force?: boolean }) =>
      withStore(options, async ({ store, output }) => {
        const devices = await store.devices(productId);
        if (devices.length > 0 && !options.force) {
          throw new CommandError(`product ${productId} still has ${devices.length} devices: add --force to remove them too`);
        }
        expectFound(await store.removeProduct(productId), `product ${productId}`, 'svc admin product list');
        output.result({ removed: productId }, `removed ${productId}`);
      }),
    );
}
