/**
 * `svc connect`: `svc pair --no-user`, which verifies a device and remembers it. --list and --forget are those of `svc
 * devices` and `svc forget`.
 */
import { Command, Option } from 'commander';
import { forgetDevice, listDevices } from './devices.ts';
import { UsageError } from './frame/errors.ts';
import { type PairCommandOptions, pair, withPairing } from './pair.ts';

interface ConnectOptions extends PairCommandOptions {
  list?: boolean;
  forget?: string;
}

/** The command `svc connect`. */
export function connectCommand(): Command {
  const command = new Command('connect')
    .description('verify a device and remember it, as svc pair --no-user does')
    .addOption(new Option('--list', 'as svc devices').conflicts('forget'))
    .option('--forget <name>', 'as svc forget');
  return withPairing(command).action(async (device: string | undefined, options: ConnectOptions) => {
    if (device !== undefined && (options.list === true || options.forget !== undefined))
      throw new UsageError('--list and --forget take no device');
    if (options.list === true) return listDevices(options);
    if (options.forget !== undefined) return forgetDevice(options.forget, options);
    return pair(device, { ...options, user: false });
  });
}
