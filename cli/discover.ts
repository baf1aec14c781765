/**
 * `svc discover`: the devices on the local network, found by mDNS. It does not connect and knows no keys: any host can
 * announce any ids.
 */
import { Command, InvalidArgumentError, Option } from 'commander';
import { type Environment, MdnsAction, type MdnsResult, type MdnsResultReceiver, SvcClient } from '../client/node.ts';
import { nodeEnvironment, stderrLog } from '../platform/node/index.ts';
import { isSubtype } from '../protocol/discovery/index.ts';
import { formatHostPort } from '../protocol/records/index.ts';
import type { Frame } from './client/open.ts';
import { seconds } from './frame/arguments.ts';
import { UsageError } from './frame/errors.ts';
import { Output } from './frame/output.ts';
import { interruption, stopped, unlessInterrupted } from './frame/signals.ts';
import { table } from './frame/table.ts';

export interface DiscoverOptions {
  subtype?: string;
  /** ms */
  timeout?: number;
  watch?: boolean;
  json?: boolean;
}

/** ms */
const DEFAULT_TIMEOUT = 2_000;

const SIGNS = { [MdnsAction.ADD]: '+', [MdnsAction.UPDATE]: '~', [MdnsAction.REMOVE]: '-' } as const;
const EVENTS = { [MdnsAction.ADD]: 'add', [MdnsAction.UPDATE]: 'update', [MdnsAction.REMOVE]: 'remove' } as const;

const NOTE = `
A device is shown with product id and device id, friendly name and addresses: \`svc pair --address <address>:<port> --fingerprint <of the device>\`
reaches it. Any host of the network can announce any device; only the key of a connection identifies it.

With --watch a line begins with + for a new device, ~ for a changed one, - for one that is gone.`;

/** The command `svc discover`. */
export function discoverCommand(): Command {
  return new Command('discover')
    .description('list the devices on the local network, by mDNS, without connecting')
    .option('--watch', 'continue until Ctrl-C, and print changes')
    .addOption(new Option('--subtype <name>', 'only devices of this group, for example thermostat').argParser(subtype))
    .addOption(new Option('--timeout <seconds>', 'duration of the search, 1 to 3600; not with --watch (default: 2)').argParser(seconds))
    .option('--json', 'print the result as JSON; with --watch one document per change')
    .addHelpText('after', NOTE)
    .action(async (options: DiscoverOptions) => {
      const environment = nodeEnvironment(process.env.SVC_DEBUG ? { log: stderrLog({ level: 'debug' }) } : {});
      const { signal, dispose } = interruption();
      // On a host without any network no socket keeps the process alive.
      const alive = setInterval(() => {}, 60_000);
      try {
        await discover(options, { environment, output: new Output(options.json === true), signal });
      } finally {
        clearInterval(alive);
        dispose();
      }
    });
}

/**
 * @throws UsageError for options that exclude each other; Interrupted when the signal fires, except with `watch`, which
 *   it ends
 */
export async function discover(options: DiscoverOptions, { environment, output, signal }: Frame): Promise<void> {
  if (options.watch === true && options.timeout !== undefined) throw new UsageError('--watch and --timeout exclude each other');
  const client = SvcClient.create({ environment });
  try {
    if (options.watch === true) await watch(client, options, output, signal);
    else await list(client, options, environment, output, signal);
  } finally {
    await client.stop();
  }
}

async function list(
  client: SvcClient,
  options: DiscoverOptions,
  { clock }: Environment,
  output: Output,
  signal: AbortSignal,
): Promise<void> {
  const found = new Map<string, MdnsResult>();
  listen(client, options, {
    onResultReady: (result) => {
      if (result.action === MdnsAction.REMOVE) found.delete(result.serviceInstanceName);
      else found.set(result.serviceInstanceName, result);
    },
  });
  const { timeout = DEFAULT_TIMEOUT } = options;
  await unlessInterrupted(signal, new Promise<void>((resolve) => void clock.schedule(timeout, resolve)));
  const devices = [...found.values()].sort((one, other) => (nameOf(one) < nameOf(other) ? -1 : 1));
  if (devices.length === 0)
    output.note(`no device answered within ${timeout / 1000} s: check that the device runs, announces itself, and is on this network`);
  if (devices.length > 0 || output.json)
    output.result({ devices: devices.map(documentOf) }, table(['device', 'name', 'addresses'], devices.map(cells)));
}

async function watch(client: SvcClient, options: DiscoverOptions, output: Output, signal: AbortSignal): Promise<void> {
  listen(client, options, {
    onResultReady: (result) =>
      output.result({ event: EVENTS[result.action], ...documentOf(result) }, [`${SIGNS[result.action]} ${line(result)}`]),
  });
  output.note('searching for devices on the local network; Ctrl-C ends it');
  await stopped(signal);
}

function listen(client: SvcClient, { subtype = '' }: DiscoverOptions, receiver: MdnsResultReceiver): void {
  client.addMdnsResultListener(receiver, subtype);
}

function subtype(text: string): string {
  if (!isSubtype(text)) throw new InvalidArgumentError('A subtype is 1 to 63 printable characters without "." and "\\".');
  return text;
}

function documentOf({ serviceInstanceName, productId, deviceId, txtItems, addresses }: MdnsResult) {
  return {
    productId,
    deviceId,
    name: txtItems.fn ?? '',
    addresses: addresses.map(({ address, port }) => formatHostPort({ host: address, port })),
    instance: serviceInstanceName,
    txt: txtItems,
  };
}

function cells(result: MdnsResult): [string, string, string] {
  const { name, addresses } = documentOf(result);
  return [nameOf(result), name, addresses.join(' ')];
}

function line(result: MdnsResult): string {
  return cells(result)
    .filter((cell) => cell !== '')
    .join('  ');
}

/** A service without ids is shown by its instance name. */
function nameOf({ productId, deviceId, serviceInstanceName }: MdnsResult): string {
  return productId === '' || deviceId === '' ? serviceInstanceName : `${productId}.${deviceId}`;
}
