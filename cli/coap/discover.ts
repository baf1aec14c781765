/** `svc coap discover`: the resources that a device lists at `/.well-known/core` (RFC 6690). */
import { Argument, Command, Option } from 'commander';
import { ContentFormat } from '../../client/node.ts';
import { attributeOf, CORE_PATH, type CoreLink, decodeLinks, formatStatus } from '../../protocol/coap/index.ts';
import { type OpenConnection, withConnection } from '../client/open.ts';
import { oneDevice, type TargetOptions, withTarget } from '../client/target.ts';
import { CommandError } from '../frame/errors.ts';
import { sharedOptions } from '../frame/shared-options.ts';
import { table } from '../frame/table.ts';

interface DiscoverOptions extends TargetOptions {
  href?: string;
  rt?: string;
}

const HEADINGS = ['path', 'methods', 'observe', 'type', 'title'];

/** The command `svc coap discover`. */
export function coapDiscoverCommand(): Command {
  const command = new Command('discover')
    .description('list the CoAP resources of a device that this client may see')
    .addArgument(new Argument('[device]', 'as --device'))
    .addOption(new Option('--href <path>', 'only this path; a trailing * matches anything'))
    .addOption(new Option('--rt <type>', 'only resources of this type; a trailing * matches anything'));
  return withTarget(command).action((device: string | undefined, _own: DiscoverOptions, self: Command) => {
    // `svc coap` parses the options that both share.
    const own = self.options.map((option) => option.attributeName());
    const options = sharedOptions<DiscoverOptions>(self, own);
    return withConnection(oneDevice(device, options), (opened) => discover(opened, options));
  });
}

async function discover({ connection, output, signal, device }: OpenConnection, { href, rt }: DiscoverOptions): Promise<void> {
  const query = { ...(href !== undefined && { href }), ...(rt !== undefined && { rt }) };
  const { status, format, text } = await connection.get(CORE_PATH, { query, signal });
  if (status !== 205 || format !== ContentFormat.LINK_FORMAT)
    throw new CommandError(`${device} does not list its resources (${formatStatus(status)})`);
  const links = decodeLinks(text);
  const rows = links.map((link) => [
    pathOf(link),
    attributeOf(link, 'methods'),
    isObservable(link) ? 'yes' : '',
    attributeOf(link, 'rt'),
    attributeOf(link, 'title'),
  ]);
  output.result(links.map(documentOf), rows.length === 0 ? 'no such resource' : table(HEADINGS, rows));
}

/** The path as an argument of `svc coap`, with the `{…}` of a templated path. */
function pathOf({ href }: CoreLink): string {
  return href.replace(/%7B/gi, '{').replace(/%7D/gi, '}');
}

function isObservable(link: CoreLink): boolean {
  return attributeOf(link, 'obs') !== undefined;
}

function documentOf(link: CoreLink): Record<string, unknown> {
  return {
    href: link.href,
    methods: attributeOf(link, 'methods')?.split(' '),
    observable: isObservable(link),
    ...Object.fromEntries(link.attributes.filter(([name]) => !['methods', 'obs'].includes(name))),
  };
}
