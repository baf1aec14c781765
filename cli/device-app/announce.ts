/** The output of `svc device`: its identity, how to pair with it, and its events. */
import type { Device, DeviceEvent, Iam, SvcError } from '../../device/index.ts';
import { DEFAULT_LOCAL_PORT } from '../../device/settings.ts';
import { ownAddress } from '../../platform/node/index.ts';
import { encodePairingString, formatHostPort, type IamUser, type PairingMode, type PairingString } from '../../protocol/records/index.ts';
import { lossText } from '../../runtime/session/index.ts';
import { hint } from '../frame/errors.ts';
import type { Output } from '../frame/output.ts';
import { optionsBeside, rootsNote, stationOfPairing } from '../frame/server-options.ts';
import { commandLine, dataOption, shellWord } from '../frame/shell-word.ts';
import { ownPlaces, share } from '../pairing-share.ts';
import { type Access, ADMIN, hasUsers, isAdministered, pairingOf } from './access.ts';
import type { DeviceState } from './data.ts';
import type { OpenDevice } from './open.ts';

/** The pairing strings that a device can hand out now. */
export interface Pairings {
  /** The string without a password: to connect, and for the local pairing modes. */
  readonly plain: PairingString;
  /** The string with the password of open pairing, while that is on. */
  readonly open?: PairingString;
  /** The string for the user `admin`, if its password was created just now. */
  readonly invitation?: PairingString;
}

/** Prints the device's names, and how clients become its users. Every printed command runs as it stands. */
export async function announce(output: Output, { device, data, state, access }: OpenDevice, started: boolean): Promise<void> {
  const { ProductId, DeviceId } = state;
  const fingerprint = device.deviceFingerprint;
  const localPort = started ? device.localPort : undefined;
  const pairings = await pairingsOf(device, access, placeOf(state, localPort));
  const modes = pairingOf(access.iam);
  const [productCommand, adminCommand] = registration(state, fingerprint);
  output.result(
    {
      event: 'started',
      productId: ProductId,
      deviceId: DeviceId,
      fingerprint,
      ...(started && { localPort: device.localPort, p2pPort: device.p2pPort }),
      station: stationProof(state),
      sct: access.iam.state.openPairingSct,
      pairingModes: modes,
      pairingString: encodePairingString(pairings.plain),
      openPairing: pairings.open && encodePairingString(pairings.open),
      invitation: pairings.invitation && encodePairingString(pairings.invitation),
      productCommand,
      adminCommand,
    },
    [
      `device ${ProductId}.${DeviceId}${started ? `, UDP port ${device.localPort} for direct clients` : ''}`,
      `fingerprint        ${fingerprint}`,
      ...stationLines(state, fingerprint),
      `pairing modes      ${modes.length === 0 ? 'none' : modes.join(', ')}`,
      ...pairingLines(pairings, { beside: optionsToPair(state), localPort: modes.some(isLocal) ? localPort : undefined }),
    ],
  );
  if (!hasUsers(access.iam)) share(output, pairings.invitation ?? pairings.open ?? pairings.plain, {});
  if (pairings.invitation === undefined && modes.includes('PasswordInvite') && !isAdministered(access.iam))
    output.note(['this device has no administrator yet; this creates an invitation:', inviteCommand(data.directory)]);
}

function stationLines(state: DeviceState, fingerprint: string): string[] {
  const { ServerUrl, ServerRootCerts, Joined } = state;
  if (ServerUrl === undefined) return [];
  const [productCommand, deviceCommand] = registration(state, fingerprint);
  const register = [
    `register it with   ${productCommand}`,
    `                   ${deviceCommand}`,
    '                   (at the base station, with its data directory; the product only if it is missing)',
  ];
  return [
    `base station       ${ServerUrl}, ${stationProof(state) === 'pinned' ? 'pinned by its fingerprint' : 'authenticated by TLS, else by --server-fingerprint'}`,
    ...rootsNote(ServerRootCerts).map((note) => `                   ${note}`),
    ...(Joined === true ? [] : register),
  ];
}

/**
 * Returns the lines on pairing. Strings with a password are on their own line: in the arguments of a command other
 * users would see them.
 * @param beside options that a client needs
 * @param localPort where the local pairing modes are possible; undefined: nowhere
 */
function pairingLines(
  { plain, open, invitation }: Pairings,
  { beside, localPort }: { beside: string; localPort: number | undefined },
): string[] {
  const string = encodePairingString(plain);
  const lines = [`connect with       svc connect '${string}'${beside}`];
  if (localPort !== undefined) lines.unshift(`pair locally with  svc pair '${string}'${directly(localPort)}`);
  if (open !== undefined)
    lines.push(
      `pair with          svc pair -${beside}`,
      '                   (it asks for this line, and for a user name without --username)',
      encodePairingString(open),
    );
  if (invitation !== undefined)
    lines.push(
      `become ${ADMIN} with  svc pair -${beside}`,
      '                   (it asks for this line, which is shown only now and can be used once)',
      encodePairingString(invitation),
    );
  return lines;
}

function isLocal(mode: PairingMode): boolean {
  return mode.startsWith('Local');
}

/** Returns the command that invites the first administrator again. */
export function inviteCommand(directory: string): string {
  return `svc device invite ${ADMIN}${dataOption('device', directory)}`;
}

/** Returns the commands that register the device at its base station. */
export function registration({ ProductId, DeviceId }: DeviceState, fingerprint: string): readonly [product: string, device: string] {
  return [
    commandLine('svc admin product add', [ProductId]),
    commandLine('svc admin device add', [ProductId, DeviceId], ` --fingerprint ${fingerprint}`),
  ];
}

/**
 * Returns the place of the device in a pairing: its base station, else its addresses on the local network.
 * @param localPort undefined for a device that does not run: the default one
 */
export function placeOf({ ServerUrl: url, ServerFingerprint: fingerprint }: StationState, localPort = DEFAULT_LOCAL_PORT): Place {
  return url === undefined ? ownPlaces(localPort) : stationOfPairing({ url, fingerprint });
}

type Place = Pick<PairingString, 'server' | 'serverFingerprint' | 'addresses'>;

/** Options that a client needs in addition to a pairing string of the device. */
export function optionsToPair({
  ServerUrl: url,
  ServerFingerprint: fingerprint,
  ServerRootCerts: roots,
  ServerWebSocketUrl: webSocket,
}: StationState): string {
  return url === undefined ? '' : optionsBeside({ url, fingerprint, roots, webSocket });
}

function directly(localPort: number): string {
  return ` --address ${shellWord(formatHostPort({ host: ownAddress(), port: localPort }))}`;
}

type StationState = Pick<DeviceState, 'ServerUrl' | 'ServerFingerprint' | 'ServerRootCerts' | 'ServerWebSocketUrl'>;

/** Returns the authentication of the base station; undefined without one. */
function stationProof({ ServerUrl, ServerFingerprint }: StationState): 'pinned' | 'tls' | undefined {
  if (ServerUrl === undefined) return undefined;
  return ServerFingerprint === undefined ? 'tls' : 'pinned';
}

/** The pairing string of an invited user. */
export function invitationOf(device: PairingString, { username, sct }: Pick<IamUser, 'username' | 'sct'>, password: string): PairingString {
  return { ...device, username, password, ...(sct !== undefined && { sct }) };
}

/** Returns the pairing strings of the device, with its place. */
export async function pairingsOf(device: Device, { iam, adminPassword }: Access, place: Place): Promise<Pairings> {
  const { openPairingSct: sct, openPairingRole } = iam.state;
  const base = { productId: device.productId ?? '', deviceId: device.deviceId ?? '', fingerprint: device.deviceFingerprint, ...place };
  const plain = { ...base, ...(sct !== undefined && { sct }) };
  const modes = pairingOf(iam);
  const password = modes.includes('PasswordOpen') && openPairingRole !== undefined ? await iam.openPairingPassword() : undefined;
  const admin = iam.user(ADMIN);
  const invited = modes.includes('PasswordInvite') && admin !== undefined && adminPassword !== undefined;
  return {
    plain,
    ...(password !== undefined && { open: { ...plain, password } }),
    ...(invited && { invitation: invitationOf(base, admin, adminPassword) }),
  };
}

/** Warns of settings that an owner should know about. */
export function warn(output: Output, iam: Iam, state: DeviceState): void {
  const { localOpenPairing, passwordOpenPairing, openPairingRole } = iam.state;
  if ((localOpenPairing || passwordOpenPairing) && iam.administers(openPairingRole))
    output.warn('every client that pairs by open pairing becomes an administrator of this device: turn it off when you are done');
  if (state.ServerUrl === undefined && !output.isScreen)
    output.note('no base station: clients reach this device only on the local network');
}

/** Prints events from now on. */
export function follow(device: Device, iam: Iam, output: Output): void {
  device.onDeviceEvent((event, reason) => {
    if (event === 'CLOSED') return;
    const text = eventText(event, reason);
    const ordinary = event === 'ATTACHED' || event === 'DETACHED';
    if (!ordinary && !output.json) return output.warn(text);
    output.result({ event: eventName(event), ...(reason !== null && { reason: reason.message, code: reason.code }) }, text);
  });
  device.onConnectionEvent((connection, event) => {
    const client = connection.clientFingerprint;
    const user = iam.userByFingerprint(client)?.username;
    output.result(
      { event: `connection-${eventName(event)}`, connection: connection.ref, client, ...(user !== undefined && { user }) },
      `connection ${connection.ref} ${eventName(event)}: client ${client.slice(0, 32)}${user === undefined ? '' : `, user ${user}`}`,
    );
  });
  device.onDatagramLoss((loss) => {
    const text = lossText(loss, 'clients');
    if (output.json) output.result({ event: 'datagrams-lost', ...loss }, text);
    else output.warn(text);
  });
  iam.onChange((change) => {
    if (change.kind !== 'user-paired') return;
    const { username, mode, fingerprint } = change;
    output.result(
      { event: 'paired', user: username, mode, client: fingerprint },
      `user ${username} paired by ${mode}: client ${fingerprint.slice(0, 32)}`,
    );
  });
}

function eventName(event: string): string {
  return event.toLowerCase().replaceAll('_', '-');
}

/** An event of the device in words. */
export function eventText(event: DeviceEvent, reason: SvcError | null): string {
  if (event === 'ATTACHED') return 'attached to the base station';
  const why = reason === null ? '' : `: ${reason.message}`;
  if (event === 'DETACHED') return `detached from the base station${reason === null ? '' : `${why}; trying again`}`;
  return `${event}${why}${reason !== null && hint(reason.code) !== undefined ? `: ${hint(reason.code)}` : ''}`;
}
