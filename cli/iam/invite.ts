/**
 * `svc iam invite`: creates a user with a role and a password that works once, and prints pairing string, link and QR
 * code.
 *
 * The pairing string has the device's fingerprint, its place, and the user's token: its holder reaches the right
 * device.
 */
import { randomInt } from 'node:crypto';
import { type Command, Option } from 'commander';
import type { IamUser } from '../../client/node.ts';
import { isLoopback, parseAddress } from '../../protocol/address.ts';
import { encodePairingString, isHostPort, type PairingString } from '../../protocol/records/index.ts';
import type { KnownDevice } from '../client/known.ts';
import type { TargetOptions } from '../client/target.ts';
import { placeOfActive } from '../client/way.ts';
import { hostPort } from '../frame/arguments.ts';
import { type NamedStation, optionsBeside, rootsNote, stationOfPairing } from '../frame/server-options.ts';
import { stateOption } from '../frame/shell-word.ts';
import { ownPlaces, type ShareOptions, share, shareOptions } from '../pairing-share.ts';
import { type IamOpened, iamSubcommand, keyLines, withIam } from './shared.ts';

interface InviteOptions extends TargetOptions, ShareOptions {
  role: string;
  displayName?: string;
  again?: boolean;
}

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';
/** 71 bits, as a server connect token. */
const LENGTH = 12;

/** The command `svc iam invite`. */
export function inviteCommand(): Command {
  const command = iamSubcommand('invite', 'create a user and print the pairing string for its client')
    .argument('<username>', 'a-z, 0-9, _, . and -')
    .option('--role <id>', 'its role, one of `svc iam roles`', 'Guest')
    .option('--display-name <text>', 'its display name')
    .addOption(new Option('--again', 'for an existing user: give it a new password, and keep its role').conflicts('role'));
  for (const option of shareOptions()) command.addOption(option);
  return command.action((username: string, options: InviteOptions) => withIam(options, (opened) => invite(opened, username, options)));
}

async function invite(opened: IamOpened, username: string, options: InviteOptions): Promise<void> {
  const { connection, iam, output, device } = opened;
  const password = Array.from({ length: LENGTH }, () => ALPHABET[randomInt(ALPHABET.length)]).join('');
  const { ProductId: productId, DeviceId: deviceId } = connection.deviceInfo as { ProductId: string; DeviceId: string };
  const fingerprint = connection.getDeviceFingerprint();
  const pairing = { productId, deviceId, username, password, fingerprint, ...placeOf(opened) };
  const existing = options.again === true ? await iam.getUser(username) : undefined;
  // An invitation that cannot be written changes nothing at the device.
  encodePairingString(withToken(pairing, existing));
  const { displayName, role } = options;
  const named = displayName === undefined ? {} : { displayName };
  const user = existing ?? (await iam.createUser(username, { password, role, ...named }));
  if (existing !== undefined) {
    if (displayName !== undefined) await iam.updateUserDisplayName(username, displayName);
    await iam.updateUserPassword(username, password);
  }
  await warnIfOff(opened, options);
  if (existing !== undefined) sayKeys(opened, existing, options);
  const station = stationOf(opened);
  const shared = share(output, withToken(pairing, user), options);
  output.result({ device, username, role: user.role, ...(existing && { keeps: existing.fingerprints }), ...shared }, [
    `${username} is invited to ${device} as ${user.role ?? 'a user without a role'}. This works once: the first client that uses it becomes ${username}.`,
    '',
    shared.pairingString,
    shared.link,
    '',
    `pair with  svc pair -${station === undefined ? '' : optionsBeside(station)}`,
    '           (it reads the pairing string or the link from standard input)',
    ...rootsNote(station?.roots).map((note) => `           ${note}`),
  ]);
}

function withToken(pairing: PairingString, user: IamUser | undefined): PairingString {
  return user?.sct === undefined ? pairing : { ...pairing, sct: user.sct };
}

/** A new invitation takes no key away: one that was lost stays valid until it is removed. */
function sayKeys({ output, device }: IamOpened, user: IamUser, { state }: InviteOptions): void {
  const { length } = user.fingerprints;
  if (length > 0)
    output.note([
      length === 1
        ? `${user.username} keeps this key, which stays valid:`
        : `${user.username} keeps these ${length} keys, which stay valid:`,
      ...keyLines(user, { device, state }),
    ]);
}

/** Warns of an invitation that cannot be used. A client that may not see the settings gets no warning. */
async function warnIfOff({ iam, output, device }: IamOpened, { state }: InviteOptions): Promise<void> {
  const settings = await iam.getSettings().catch(() => undefined);
  if (settings?.passwordInvitePairing === false)
    output.warn(`the device accepts no invitations now: svc iam settings set password-invite-pairing on -d ${device}${stateOption(state)}`);
}

/** The known base station of the device. */
function stationOf({ connection, known }: IamOpened): NamedStation | undefined {
  const { ServerUrl: url, ServerWebSocketUrl: webSocket } = deviceOf({ connection, known }) ?? {};
  return url === undefined ? undefined : { url, fingerprint: known.station(url)?.Fingerprint, roots: known.station(url)?.Roots, webSocket };
}

/**
 * Returns the place of the device: its base station, else the address by which this client reaches it. A loopback
 * address means this host, which others reach by another address.
 */
function placeOf(opened: IamOpened): Pick<PairingString, 'server' | 'serverFingerprint' | 'addresses'> {
  const station = stationOf(opened);
  if (station !== undefined) return stationOfPairing(station);
  const address = deviceOf(opened)?.Address ?? placeOfActive(opened.connection);
  // A zone of this host has no meaning elsewhere: there the local network is searched.
  if (address === undefined || !isHostPort(address)) return {};
  const { host, port } = hostPort(address);
  return isOwn(host) ? ownPlaces(port) : { addresses: [address] };
}

function deviceOf({ connection, known }: Pick<IamOpened, 'connection' | 'known'>): KnownDevice | undefined {
  const { ProductId, DeviceId } = connection.deviceInfo as { ProductId: string; DeviceId: string };
  return known.byId(ProductId, DeviceId);
}

function isOwn(host: string): boolean {
  const bytes = parseAddress(host);
  return host === 'localhost' || (bytes !== null && isLoopback(bytes));
}
