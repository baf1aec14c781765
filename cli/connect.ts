/**
 * `svc connect`: `svc pair --no-user`, which verifies a device and remembers it. With --list shows the known devices, with --forget removes one.
 */
import { Command } from 'commander';
import { documentOf, idOf, Known, type KnownDevice, stateDirectory } from './client/known.ts';
import { UsageError } from './frame/errors.ts';
import { Output } from './frame/output.ts';
import { type PairCommandOptions, pair, withPairing } from './pair.ts';

interface ConnectOptions extends PairCommandOptions {
  list?: boolean;
  forget?: string;
}

/** The command `svc connect`. */
export function connectCommand(): Command {
  const command = new Command('connect')
    .description('verify a device and remember it, as svc pair --no-user does')
    .option('--list', 'show the known devices and connect to none')
    .option('--forget <name>', 'forget a device and connect to none');
  return withPairing(command).action(async (device: string | undefined, options: ConnectOptions) => {
    if (options.list === true) return list(options);
    if (options.forget !== undefined) return forget(options.forget, options);
    return pair(device, { ...options, user: false });
  });
}

async function list(options: ConnectOptions): Promise<void> {
  const known = await Known.open(stateDirectory(options.state));
  const text = known.devices.length === 0 ? `no device is known yet in ${known.directory}` : known.devices.map(line);
  new Output(options.json === true).result(known.devices.map(documentOf), text);
}

async function forget(name: string, options: ConnectOptions): Promise<void> {
  const known = await Known.open(stateDirectory(options.state));
  const device = known.byName(name);
  if (device === undefined) throw new UsageError(`there is no device ${JSON.stringify(name)}: see svc connect --list`);
  known.forget(device);
  await known.save();
  new Output(options.json === true).result({ forgotten: idOf(device) }, `forgot ${idOf(device)}`);
}

function line(device: KnownDevice): string {
  const where = device.ServerUrl ?? device.Address ?? 'local network';
  return [device.Name ?? idOf(device), idOf(device), device.Fingerprint, where].join('  ');
}
