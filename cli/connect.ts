/**
 * `svc connect`: pairs with a device (remembers it), or shows what is known about one. With --list shows the known devices, with --forget
 * removes one.
 */
import { Argument, Command } from 'commander';
import type { Connection } from '../client/node.ts';
import { checkName } from './client/known.ts';
import { type Opened, withConnection } from './client/open.ts';
import { readPairingString, type TargetOptions, withTarget } from './client/target.ts';
import { wayOf } from './client/way.ts';
import { forgetDevice, listDevices } from './devices.ts';
import { UsageError } from './frame/errors.ts';
import { shellWord, stateOption } from './frame/shell-word.ts';

interface ConnectOptions extends TargetOptions {
  name?: string;
  replace?: boolean;
  list?: boolean;
  forget?: string;
}

/** The command `svc connect`. */
export function connectCommand(): Command {
  const command = new Command('connect')
    .description('pair with a device: connect to it, check its key, remember it')
    .addArgument(new Argument('[pairing-string]', 'p=…,d=…,sct=…,fp=…, as svc device prints it at its start'))
    .option('--name <name>', 'remember the device by this name')
    .option('--replace', 'accept the fingerprint given now in place of the known one')
    .option('--list', 'as svc devices')
    .option('--forget <name>', 'as svc forget');
  return withTarget(command).action(async (pairing: string | undefined, options: ConnectOptions) => {
    if (options.list === true) return listDevices(options);
    if (options.forget !== undefined) return forgetDevice(options.forget, options);
    const { name } = options;
    if (name !== undefined) checkName(name);
    if (pairing !== undefined && options.device !== undefined)
      throw new UsageError('give the pairing string once: as argument or with --device');
    if (pairing?.includes('=') === false)
      throw new UsageError(`${JSON.stringify(pairing)} is not a pairing string: a known device is named with -d ${shellWord(pairing)}`);
    if (pairing !== undefined) readPairingString(pairing);
    const work = (opened: Opened): Promise<void> => show(opened, options.state);
    await withConnection({ ...options, ...(pairing !== undefined && { device: pairing }) }, work, {
      replace: options.replace === true,
      name,
    });
  });
}

async function show({ connection, output, device, known, server }: Opened, state: string | undefined): Promise<void> {
  const { over, text } = wayOf(connection);
  const info = {
    device,
    fingerprint: connection.getDeviceFingerprint(),
    verified: connection.verified,
    station: connection.stationVerified,
    type: connection.getType(),
    over,
    client: connection.getClientFingerprint(),
    state: known.directory,
  };
  output.result(info, [
    `connected to ${device} (${text})`,
    `device fingerprint  ${info.fingerprint} (${info.verified === 'pinned' ? 'as expected' : 'first contact, now remembered'})`,
    ...stationLines(info.station, server?.url, state),
    `client fingerprint  ${info.client}`,
    `remembered in       ${info.state}`,
  ]);
}

/** @param url of the base station that is remembered @param state as it was given */
export function stationLines(station: Connection['stationVerified'], url: string | undefined, state: string | undefined): string[] {
  if (station !== null) return [`base station        ${station === 'pinned' ? 'pinned by its fingerprint' : 'proved by TLS'}`];
  return url === undefined
    ? []
    : [`base station        ${url}, which this connect did not need: \`${doctor(url, state)}\` checks whether it is there`];
}

function doctor(url: string, state: string | undefined): string {
  return `svc doctor --server ${shellWord(url)}${stateOption(state)}`;
}
