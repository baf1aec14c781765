/**
 * `svc status`: shows what this client is and knows, from its state directory alone; it does not connect and creates
 * nothing. With a device it connects, and shows this client's user on the device, the path and the round trip.
 */
import { Argument, Command } from 'commander';
import { type Connection, IamUtil, SvcClient } from '../client/node.ts';
import { documentOf, idOf, Known, type KnownStation, stateDirectory } from './client/known.ts';
import { type OpenConnection, withConnection } from './client/open.ts';
import { milliseconds, roundTrip } from './client/round-trip.ts';
import { nextStep, type Standing, standingOf, userText } from './client/standing.ts';
import { namesDevice, oneDevice, type TargetOptions, withTarget } from './client/target.ts';
import { placeOf, wayOf } from './client/way.ts';
import { wayTo } from './devices.ts';
import { UsageError } from './frame/errors.ts';
import { Output } from './frame/output.ts';
import { table } from './frame/table.ts';

/** ms for one answer. */
const ANSWER = 10_000;
/** Options that only read the state directory. */
const ALONE: readonly string[] = ['state', 'json'];

/** The command `svc status`. */
export function statusCommand(): Command {
  const command = new Command('status')
    .description('show what this client is and knows, without connecting; with a device: connect, and show user, path and round trip')
    .addArgument(new Argument('[device]', 'as --device'));
  return withTarget(command).action(async (device: string | undefined, options: TargetOptions, self: Command) => {
    const target = oneDevice(device, options);
    if (namesDevice(target)) return withConnection(target, (opened) => showDevice(opened, options.state));
    const unused = self.options.find(
      (option) => self.getOptionValueSource(option.attributeName()) === 'cli' && !ALONE.includes(option.attributeName()),
    );
    if (unused !== undefined) throw new UsageError(`${unused.long} has effect only with a device: name one, or leave it out`);
    return overview(options);
  });
}

/** @param state directory, as it was given */
async function showDevice(opened: OpenConnection, state: string | undefined): Promise<void> {
  const { connection, known, output, environment, signal, device, server } = opened;
  const time = await roundTrip(connection, environment.clock, ANSWER, signal);
  const standing = await standingOf(new IamUtil(connection), connection.getClientFingerprint());
  const user = standing.kind === 'user' ? standing : undefined;
  const { ProductId, DeviceId } = connection.deviceInfo as { ProductId: string; DeviceId: string };
  const kept = known.byId(ProductId, DeviceId);
  if (kept !== undefined && user !== undefined) {
    known.remember({ ...kept, User: user.username });
    await known.save();
  }
  const { over, text } = wayOf(connection);
  const active = connection.paths().paths.find((path) => path.active);
  const place = active === undefined ? '' : `, ${placeOf(active)}`;
  const document = {
    device,
    name: kept?.Name,
    user: user?.username ?? null,
    role: user?.role ?? null,
    path: over,
    address: active && placeOf(active),
    rtt: time,
    server: server?.url,
  };
  const next = standing.kind === 'not-a-user' ? nextStep(standing.modes, { name: kept?.Name ?? device, state, pairing: undefined }) : '';
  output.result(document, [
    `device      ${device}${kept?.Name === undefined ? '' : ` (${kept.Name})`}`,
    `user        ${userLine(standing, next, kept?.User)}`,
    `path        ${text}${place}${overWebSocket(connection)}`,
    `round trip  ${milliseconds(time)}`,
  ]);
}

function overWebSocket(connection: Connection): string {
  return connection.getType() === 'RELAY' && connection.paths().station?.over === 'websocket' ? ', over a WebSocket' : '';
}

/** The user that this client is to the device. @param next what to do to become a user @param before as last seen */
function userLine(standing: Standing, next: string, before: string | undefined): string {
  if (standing.kind === 'user') return userText(standing);
  if (standing.kind === 'no-users') return 'none: the device has no users';
  if (before === undefined) return `none yet: ${next}`;
  return `none, and was ${before}: that user was deleted, or the device was set up again; ${next}`;
}

async function overview(options: TargetOptions): Promise<void> {
  const known = await Known.open(stateDirectory(options.state));
  const pem = await known.existingPrivateKey();
  const client = pem === undefined ? null : fingerprintOf(pem);
  const { devices, directory } = known;
  const stations = Object.entries(known.stations);
  const document = {
    client,
    state: directory,
    stations: stations.map(([url, { Fingerprint, Seen, Roots }]) =>
      Roots === undefined
        ? { url, verified: 'pinned', fingerprint: Fingerprint, reached: Seen }
        : { url, verified: 'tls', roots: Roots === '' ? 'platform' : 'own' },
    ),
    devices: devices.map(documentOf),
  };
  new Output(options.json === true).result(document, [
    `client         ${client ?? 'no key yet: create one with svc key create'}`,
    `remembered in  ${directory}`,
    ...section(
      'base stations',
      ['url', 'proved'],
      stations.map(([url, station]) => [url, proof(station)]),
    ),
    ...section(
      'devices',
      ['name', 'device', 'fingerprint', 'way'],
      devices.map((device) => [device.Name, idOf(device), device.Fingerprint, wayTo(device)]),
    ),
  ]);
}

function fingerprintOf(pem: string): string {
  const connection = SvcClient.create().createConnection();
  connection.updateOptions({ PrivateKey: pem });
  return connection.getClientFingerprint();
}

function proof({ Fingerprint, Seen, Roots }: KnownStation): string {
  if (Roots === undefined) return `pinned to ${Fingerprint}${Seen ? '' : ', not reached yet'}`;
  return `by TLS, with the roots ${Roots === '' ? 'of Node' : 'of --root-certs'}`;
}

function section(title: string, headings: readonly string[], rows: readonly (readonly (string | undefined)[])[]): string[] {
  return rows.length === 0 ? [`${title}: none`] : [`${title}:`, ...table(headings, rows).map((entry) => `  ${entry}`)];
}
