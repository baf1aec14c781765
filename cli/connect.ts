/**
 * `svc connect`: `svc pair --no-user`, which verifies a device and remembers it. --list and --forget are those of `svc devices` and `svc forget`.
 */
import { Command } from 'commander';
import { forgetDevice, listDevices } from './devices.ts';
import { type PairCommandOptions, pair, withPairing } from './pair.ts';

interface ConnectOptions extends PairCommandOptions {
  list?: boolean;
  forget?: string;
}

/** The command `svc connect`. */
export function connectCommand(): Command {
  const command = new Command('connect')
    .description('verify a device and remember it, as svc pair --no-user does')
    .option('--list', 'as svc devices')
    .option('--forget <name>', 'as svc forget');
  return withPairing(command).action(async (device: string | undefined, options: ConnectOptions) => {
    if (options.list === true) return listDevices(options);
    if (options.forget !== undefined) return forgetDevice(options.forget, options);
    return pair(device, { ...options, user: false });
  });
}
