/** `svc admin service …`: HTTP endpoints that devices may invoke through the base station. The signing secret is shown once and kept sealed. */
import { Command, InvalidArgumentError } from 'commander';
import { addressClass, newId, newServiceSecret, type Service, serviceRecord } from '../../server/admin.ts';
import { collect, id, integer } from '../frame/arguments.ts';
import { CommandError, UsageError } from '../frame/errors.ts';
import { type AdminOptions, adminSubcommand, expectFound, label, organizationOf, printList, withStore } from './shared.ts';

interface AddOptions extends AdminOptions {
  name?: string;
  product?: string[];
  timeout: number;
  allowPrivate?: boolean;
}

const KNOWN = 'svc admin service list';
const DEFAULT_TIMEOUT = 10_000;

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
    .argument('<url>', 'where invocations go: https, with --allow-private also http', url)
    .argument('[id]', 'its id; made up when left out', id)
    .option('--product <id>', 'attach it to this product; may be given again', collect(id))
    .option('--name <name>', 'a friendly name', label)
    .option('--timeout <ms>', 'how long an invocation may take', timeout, DEFAULT_TIMEOUT)
    .option('--allow-private', 'it may be on this machine or in a private network; link-local and metadata addresses stay refused')
    .option('--org <id>', 'its organization; not needed while there is only one', id)
    .action((address: string, serviceId: string | undefined, options: AddOptions) => {
      checkUrl(address, options.allowPrivate === true);
      return withStore(options, async (context) => {
        const organizationId = await organizationOf(context, options);
        const record = { ...newService(address, serviceId ?? newId('se'), options), organizationId, created: context.created };
        const secret = newServiceSecret();
        const { outbound } = context.store;
        const sealedSecret = (await context.sealer()).seal(secret, serviceRecord(record));
        await outbound.addService({ ...record, sealedSecret }, options.product);
        const products = await outbound.productsOfService(record.serviceId);
        context.output.result({ ...record, products, secret }, [record.serviceId, secret]);
      });
    });
}

function newService(address: string, serviceId: string, options: AddOptions) {
  return { serviceId, name: options.name ?? null, url: address, timeout: options.timeout, allowPrivate: options.allowPrivate === true };
}

function list(): Command {
  return adminSubcommand('list', 'list the services, without their secrets')
    .option('--org <id>', 'only those of this organization', id)
    .action((options: AdminOptions) =>
      withStore(options, async ({ store, output }) => {
        const line = (each: Omit<Service, 'sealedSecret'>): string =>
          [each.serviceId, each.organizationId, each.url, each.allowPrivate ? 'private addresses allowed' : '', each.name ?? ''].join('\t');
        printList(output, (await store.outbound.services(options.org)).map(shown), line, 'no services');
      }),
    );
}

function show(): Command {
  return adminSubcommand('show', 'show a service with the products it is attached to')
    .argument('<id>', 'service', id)
    .action((serviceId: string, options: AdminOptions) =>
      withStore(options, async ({ store, output }) => {
        const service = await store.outbound.service(serviceId);
        if (service === null) throw new CommandError(`there is no service ${serviceId}: see ${KNOWN}`);
        const products = await store.outbound.productsOfService(serviceId);
        const { name, url: address, timeout: time, allowPrivate } = service;
        output.result({ ...shown(service), products }, [
          `${serviceId}  ${name ?? ''}`.trimEnd(),
          `url       ${address}`,
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
      withStore(options, async ({ store, output }) => {
        await store.outbound.attachService(serviceId, productId);
        output.result({ attached: serviceId, productId }, `${serviceId} is attached to ${productId}`);
      }),
    );
}

function detach(): Command {
  return adminSubcommand('detach', 'take a service away from a product; counts from the next invocation')
    .argument('<id>', 'service', id)
    .argument('<product>', 'product id', id)
    .action((serviceId: string, productId: string, options: AdminOptions) =>
      withStore(options, async ({ store, output }) => {
        const found = await store.outbound.detachService(serviceId, productId);
        expectFound(found, `service ${serviceId} attached to product ${productId}`, `svc admin service show ${serviceId}`);
        output.result({ detached: serviceId, productId }, `${serviceId} is not attached to ${productId} any more`);
      }),
    );
}

function remove(): Command {
  return adminSubcommand('remove', 'remove a service; counts from the next invocation')
    .argument('<id>', 'service', id)
    .action((serviceId: string, options: AdminOptions) =>
      withStore(options, async ({ store, output }) => {
        expectFound(await store.outbound.removeService(serviceId), `service ${serviceId}`, KNOWN);
        output.result({ removed: serviceId }, `removed ${serviceId}`);
      }),
    );
}

function shown({ sealedSecret: _, ...service }: Service): Omit<Service, 'sealedSecret'> {
  return service;
}

function url(text: string): string {
  const parsed = URL.canParse(text) ? new URL(text) : null;
  const plain =
    parsed !== null && /^https?:$/.test(parsed.protocol) && parsed.username === '' && parsed.password === '' && parsed.hash === '';
  if (!plain || text.length > 2048) throw new InvalidArgumentError('Expected an https URL without user, password and fragment.');
  return parsed.href;
}

/** What can be said before a name is resolved. */
function checkUrl(address: string, allowPrivate: boolean): void {
  const { protocol, hostname } = new URL(address);
  if (protocol === 'http:' && !allowPrivate)
    throw new UsageError('an http URL sends messages in clear: use https, or --allow-private for a service of your own network');
  const host = hostname.replace(/^\[|\]$/g, '');
  const numeric = /^[\d.]+$/.test(host) || host.includes(':');
  const kind = numeric ? addressClass(host) : 'public';
  if (kind === 'never') throw new UsageError(`${host} is no address a service can be at`);
  if (kind === 'private' && !allowPrivate) throw new UsageError(`${host} is a private address: add --allow-private to allow that`);
}

function timeout(text: string): number {
  return integer(text, 100, 60_000, 'a timeout is 100 to 60000 milliseconds');
}
