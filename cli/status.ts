/** `svc status`: what this client is and knows, from its state directory alone. It connects to nobody and makes nothing. */
import { Command } from 'commander';
import { SvcClient } from '../client/node.ts';
import { documentOf, idOf, Known, type KnownDevice, stateDirectory } from './client/known.ts';
import { Output } from './frame/output.ts';

interface StatusOptions {
  state?: string;
  json?: boolean;
}

/** The command `svc status`. */
export function statusCommand(): Command {
  return new Command('status')
    .description('show the key of this client, the base stations and the devices it knows, without connecting')
    .option('--state <dir>', 'where key and known devices are kept (default: $XDG_STATE_HOME/svc or ~/.local/state/svc)')
    .option('--json', 'the result as JSON on standard output')
    .action(status);
}

async function status(options: StatusOptions): Promise<void> {
  const known = await Known.open(stateDirectory(options.state));
  const pem = await known.existingPrivateKey();
  const client = pem === undefined ? null : fingerprintOf(pem);
  const { devices, stations, directory } = known;
  const document = {
    client,
    state: directory,
    stations: stations.map(({ url, verified }) => ({
      url,
      verified,
      ...(verified === 'pinned' && { fingerprint: known.stationFingerprint(url), reached: known.hasSeenStation(url) }),
      ...(verified === 'tls' && { roots: known.tlsStation(url) === '' ? 'platform' : 'own' }),
    })),
    devices: devices.map(documentOf),
  };
  new Output(options.json === true).result(document, [
    `client         ${client ?? 'no key yet: svc key create makes one'}`,
    `remembered in  ${directory}`,
    ...section(
      'base stations',
      stations.map(({ url, verified }) => `${url}  ${proof(known, url, verified)}`),
    ),
    ...section('devices', devices.map(line)),
  ]);
}

function fingerprintOf(pem: string): string {
  const connection = SvcClient.create().createConnection();
  connection.updateOptions({ PrivateKey: pem });
  return connection.getClientFingerprint();
}

function proof(known: Known, url: string, verified: 'pinned' | 'tls'): string {
  if (verified === 'pinned') return `pinned to ${known.stationFingerprint(url)}${known.hasSeenStation(url) ? '' : ', not reached yet'}`;
  return `by TLS, with the roots ${known.tlsStation(url) === '' ? 'of Node' : 'of --root-certs'}`;
}

function section(title: string, entries: readonly string[]): string[] {
  return entries.length === 0 ? [`${title}: none`] : [`${title}:`, ...entries.map((entry) => `  ${entry}`)];
}

function line(device: KnownDevice): string {
  const name = device.Name === undefined ? [] : [device.Name];
  const webSocket = device.ServerWebSocketUrl === undefined ? [] : [`or ${device.ServerWebSocketUrl}`];
  return [...name, idOf(device), device.Fingerprint, device.ServerUrl ?? device.Address ?? 'local network', ...webSocket].join('  ');
}
