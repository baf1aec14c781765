/**
 * `svc devices` and `svc forget`: the devices that this client knows, from its state directory alone. They do not
 * connect.
 */
import { Command, Option } from 'commander';
import { documentOf, idOf, Known, type KnownDevice, stateDirectory } from './client/known.ts';
import { lastUsed } from './client/last-used.ts';
import { serverUrl } from './frame/arguments.ts';
import { UsageError } from './frame/errors.ts';
import { Output } from './frame/output.ts';
import { table } from './frame/table.ts';

export interface DevicesOptions {
  state?: string;
  json?: boolean;
}

interface ForgetOptions extends DevicesOptions {
  station?: string;
}

const HEADINGS = ['name', 'device', 'way', 'user', 'last used', 'fingerprint'];

/** The command `svc devices`. */
export function devicesCommand(): Command {
  return withState(new Command('devices').description('list the devices this client knows, without connecting')).action(listDevices);
}

/** The command `svc forget`. */
export function forgetCommand(): Command {
  return withState(
    new Command('forget').description('forget a device, or the key of a base station, without connecting; the device keeps its users'),
  )
    .argument('[device]', 'a name or product.device, as svc devices lists it')
    .addOption(
      new Option('--station <url>', 'forget how this base station was proved, as svc status lists it; known devices stay').argParser(
        serverUrl,
      ),
    )
    .action(async (device: string | undefined, { station, ...options }: ForgetOptions) => {
      if ((device === undefined) === (station === undefined)) throw new UsageError('give a device, or a base station with --station');
      await (station === undefined ? forgetDevice(device!, options) : forgetStation(station, options));
    });
}

function withState(command: Command): Command {
  return command
    .option('--state <dir>', 'directory of known devices (default: $XDG_STATE_HOME/svc or ~/.local/state/svc)')
    .option('--json', 'print the result as JSON');
}

/** Prints the known devices. */
export async function listDevices(options: DevicesOptions): Promise<void> {
  const known = await Known.open(stateDirectory(options.state));
  const days = await lastUsed(known.directory);
  const rows = known.devices.map((device) => [
    device.Name,
    idOf(device),
    wayTo(device),
    device.User,
    days[idOf(device)],
    device.Fingerprint,
  ]);
  const document = known.devices.map((device) => ({ ...documentOf(device), user: device.User, lastUsed: days[idOf(device)] }));
  new Output(options.json === true).result(
    document,
    rows.length === 0 ? `no device is known yet in ${known.directory}: svc pair adds one` : table(HEADINGS, rows),
  );
}

/** Forgets one. @throws UsageError for an unknown name, listing the known ones */
export async function forgetDevice(name: string, options: DevicesOptions): Promise<void> {
  const known = await Known.open(stateDirectory(options.state));
  const device = known.byName(name);
  if (device === undefined) throw new UsageError(`there is no device ${JSON.stringify(name)} (${namesOf(known.devices)})`);
  known.forget(device);
  await known.save();
  new Output(options.json === true).result({ forgotten: idOf(device) }, `forgot ${idOf(device)}`);
}

/** Forgets the proof of a base station. @throws UsageError for an unknown URL, listing the known ones */
async function forgetStation(url: string, options: DevicesOptions): Promise<void> {
  const known = await Known.open(stateDirectory(options.state));
  if (known.station(url) === undefined) {
    const urls = Object.keys(known.stations);
    throw new UsageError(`there is no base station ${url} (${urls.length === 0 ? 'none is known' : `known: ${urls.join(', ')}`})`);
  }
  known.forgetStation(url);
  await known.save();
  new Output(options.json === true).result(
    { forgotten: url },
    `forgot how ${url} was proved: give its fingerprint with --server-fingerprint, or a pairing string with it`,
  );
}

/** Returns the way to a device, besides the local network. */
export function wayTo({ ServerUrl, Address, ServerWebSocketUrl }: KnownDevice): string {
  const webSocket = ServerWebSocketUrl === undefined ? '' : ` or ${ServerWebSocketUrl}`;
  return `${ServerUrl ?? Address ?? 'local network'}${webSocket}`;
}

function namesOf(devices: readonly KnownDevice[]): string {
  return devices.length === 0 ? 'none is known' : `known: ${devices.map((device) => device.Name ?? idOf(device)).join(', ')}`;
}
