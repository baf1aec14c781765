/** `svc admin product …`: kinds of devices, to which devices and keys belong. */
import { Command } from 'commander';
import { addProduct, type Product, removeProduct } from '../../server/administration/index.ts';
import { id } from '../frame/arguments.ts';
import { type AdminOptions, administer, adminSubcommand, label, printTable } from './shared.ts';

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
      administer(options, async (administration, output) => {
        const product = await addProduct(administration, { productId, organizationId: options.org, name: options.name });
        output.result(product, product.productId);
      }),
    );
}

function list(): Command {
  return adminSubcommand('list', 'list the products')
    .option('--org <id>', 'only those of this organization', id)
    .action((options: AdminOptions) =>
      administer(options, async ({ store }, output) => {
        const row = ({ productId, organizationId, name }: Product) => [productId, organizationId, name ?? undefined];
        printTable(output, await store.products(options.org), { headings: ['product', 'organization', 'name'], row, none: 'no products' });
      }),
    );
}

function remove(): Command {
  return adminSubcommand('remove', 'remove a product')
    .argument('<id>', 'product', id)
    .option('--force', 'with all its devices')
    .action((productId: string, options: AdminOptions & { force?: boolean }) =>
      administer(options, async (administration, output) => {
        await removeProduct(administration, productId, options.force);
        output.result({ removed: productId }, `removed ${productId}`);
      }),
    );
}
