/** `svc admin service …`: HTTP endpoints that devices may invoke through the base station. The signing secret is shown once and kept sealed. */
import { Command } from 'commander';
import {
  addService,
  attachService,
  checkServiceUrl,
  detachService,
  type NewService,
  removeService,
  type ServiceRecord,
  ServiceTimeout,
  service,
  services,
  serviceUrl,
} from '../../server/administration/index.ts';
import { collect, id, integer } from '../frame/arguments.ts';
import { argument, refusing } from './refusal.ts';
import { type AdminOptions, administer, adminSubcommand, label, printTable } from './shared.ts';

interface AddOptions extends AdminOptions {
  name?: string;
  product?: string[];
  timeout: number;
  allowPrivate?: boolean;
}

/** `svc admin service add|list|show|attach|detach|remove`. */
export function adminService(): Command {
  return new Command('service')
    .description('services that devices invoke')
    .addCommand(add())
    .addCommand(list())
    .addCommand(show())
    .addCommand(attach())
    .addCommand(detach())
    .addCommand(remove());
}

function add(): Command {
  return adminSubcommand('add', 'add a service and print the secret its requests are signed with; it cannot be shown again')
    .argument('<url>', 'where invocations go: https, with --allow-private also http', argument(serviceUrl))
    .argument('[id]', 'its id; made up when left out', id)
    .option('--product <id>', 'attach it to this product; may be given again', collect(id))
    .option('--name <name>', 'a friendly name', label)
    .option('--timeout <ms>', 'how long an invocation may take', timeout, ServiceTimeout.DEFAULT)
    .option('--allow-private', 'it may be on this machine or in a private network; link-local and metadata addresses stay refused')
    .option('--org <id>', 'its organization; not needed while there is only one', id)
    .action((url: string, serviceId: string | undefined, options: AddOptions) =>
      refusing(async () => {
        // Before a store is made.
        checkServiceUrl(url, options.allowPrivate === true);
        await administer(options, async (administration, output) => {
          const { record, products, secret } = await addService(administration, newService(url, serviceId, options));
          output.result({ ...record, products, secret }, [record.serviceId, secret]);
        });
      }),
    );
}

function newService(url: string, serviceId: string | undefined, { org, name, timeout, allowPrivate, product }: AddOptions): NewService {
  return { url, serviceId, organizationId: org, name, timeout, allowPrivate, productIds: product };
}

function list(): Command {
  return adminSubcommand('list', 'list the services, without their secrets')
    .option('--org <id>', 'only those of this organization', id)
    .action((options: AdminOptions) =>
      administer(options, async (administration, output) => {
        const row = ({ serviceId, organizationId, url, allowPrivate, name }: ServiceRecord) => [
          serviceId,
          organizationId,
          url,
          allowPrivate ? 'allowed' : 'refused',
          name ?? undefined,
        ];
        const headings = ['service', 'organization', 'url', 'private addresses', 'name'];
        printTable(output, await services(administration, options.org), { headings, row, none: 'no services' });
      }),
    );
}

function show(): Command {
  return adminSubcommand('show', 'show a service with the products it is attached to')
    .argument('<id>', 'service', id)
    .action((serviceId: string, options: AdminOptions) =>
      administer(options, async (administration, output) => {
        const { record, products } = await service(administration, serviceId);
        const { name, url, timeout: time, allowPrivate } = record;
        output.result({ ...record, products }, [
          `${serviceId}  ${name ?? ''}`.trimEnd(),
          `url       ${url}`,
          `timeout   ${time} ms`,
          `private   ${allowPrivate ? 'allowed' : 'refused'}`,
          `products  ${products.join(' ') || 'none: no device may invoke it'}`,
        ]);
      }),
    );
}

function attach(): Command {
  return adminSubcommand('attach', 'let the devices of a product invoke a service')
    .argument('<id>', 'service', id)
    .argument('<product>', 'product id', id)
    .action((serviceId: string, productId: string, options: AdminOptions) =>
      administer(options, async (administration, output) => {
        await attachService(administration, serviceId, productId);
        output.result({ attached: serviceId, productId }, `${serviceId} is attached to ${productId}`);
      }),
    );
}

function detach(): Command {
  return adminSubcommand('detach', 'take a service away from a product; counts from the next invocation')
    .argument('<id>', 'service', id)
    .argument('<product>', 'product id', id)
    .action((serviceId: string, productId: string, options: AdminOptions) =>
      administer(options, async (administration, output) => {
        await detachService(administration, serviceId, productId);
        output.result({ detached: serviceId, productId }, `${serviceId} is not attached to ${productId} any more`);
      }),
    );
}

function remove(): Command {
  return adminSubcommand('remove', 'remove a service; counts from the next invocation')
    .argument('<id>', 'service', id)
    .action((serviceId: string, options: AdminOptions) =>
      administer(options, async (administration, output) => {
        await removeService(administration, serviceId);
        output.result({ removed: serviceId }, `removed ${serviceId}`);
      }),
    );
}

function timeout(text: string): number {
  const { MIN, MAX } = ServiceTimeout;
  return integer(text, MIN, MAX, `a timeout is ${MIN} to ${MAX} milliseconds`);
}
