/**
 * The screen of `svc device` at a terminal once it runs, in at most twelve lines: its identity, base station,
 * addresses, services and users, and what to do next. Until the device has a user, the QR code for the first one is
 * above.
 */
import type { Device, DeviceEvent, Environment, Iam, SvcError } from '../../device/index.ts';
import { encodePairingString, type PairingString } from '../../protocol/records/index.ts';
import type { Output } from '../frame/output.ts';
import { rootsNote } from '../frame/server-options.ts';
import { commandLine, dataOption } from '../frame/shell-word.ts';
import { ownPlaces, share } from '../pairing-share.ts';
import { hasUsers, isAdministered, pairingOf } from './access.ts';
import { eventText, inviteCommand, optionsToPair, type Pairings, pairingsOf, placeOf, registration } from './announce.ts';
import type { DeviceConfiguration } from './configuration.ts';
import type { DeviceState } from './data.ts';
import type { OpenDevice } from './open.ts';

/** The first event about the base station. */
export interface Heard {
  readonly event: DeviceEvent;
  readonly reason: SvcError | null;
}

/** Services that a device offers. */
export type Services = Pick<DeviceConfiguration, 'tcpTunnels' | 'udpTunnels'>;

/** ms that the screen waits for the base station. */
const PATIENCE = 2_000;
/** Names shown of a list, so that it fits a line. */
const SHOWN = 4;

/**
 * Listens for the first event about the base station.
 * @param device not started yet
 * @returns a function that waits for it, at most two seconds: null without one
 */
export function listenFirst(device: Pick<Device, 'onDeviceEvent'>): (environment: Pick<Environment, 'clock'>) => Promise<Heard | null> {
  const heard = new Promise<Heard>((resolve) => {
    const stop = device.onDeviceEvent((event, reason) => {
      stop();
      resolve({ event, reason });
    });
  });
  return async ({ clock }) => {
    let cancel = (): void => {};
    const late = new Promise<null>((resolve) => {
      cancel = clock.schedule(PATIENCE, () => resolve(null));
    });
    return Promise.race([heard, late]).finally(cancel);
  };
}

/** Shows the screen. @param opened started */
export async function showStartScreen(output: Output, opened: OpenDevice, services: Services, heard: Heard | null): Promise<void> {
  const { device, data, state, access } = opened;
  const { iam } = access;
  const pairings = await pairingsOf(device, access, placeOf(state, device.localPort));
  const code = hasUsers(iam) ? undefined : codeOf(pairings, iam);
  // Above the lines, which then stay visible on a small screen.
  if (code !== undefined) share(output, code, {});
  output.result(null, [
    `device       ${state.ProductId}.${state.DeviceId}`,
    `state        ${stateLine(state, heard)}`,
    `fingerprint  ${device.deviceFingerprint}`,
    `reached at   ${placesLine(device)}`,
    `services     ${servicesLine(services, data.directory)}`,
    `users        ${usersLine(iam)}`,
    ...nextLines(opened, services, heard, code),
  ]);
}

function stateLine({ ServerUrl, ServerFingerprint }: DeviceState, heard: Heard | null): string {
  if (ServerUrl === undefined) return 'running without a base station: reached only on the local network';
  if (heard === null) {
    // A base station without a certificate does not answer a client that expects one.
    const unpinned = ServerFingerprint === undefined ? '; if it has no TLS certificate, give --server-fingerprint' : '';
    return `not attached yet: ${ServerUrl} has not answered so far; the device keeps trying${unpinned}`;
  }
  if (heard.event !== 'ATTACHED') return `not attached to ${ServerUrl}: ${eventText(heard.event, heard.reason)}`;
  return `attached to ${ServerUrl}, ${ServerFingerprint === undefined ? 'authenticated by TLS' : 'pinned by its fingerprint'}`;
}

function placesLine({ localPort, p2pPort }: Device): string {
  const { addresses = [] } = ownPlaces(localPort);
  const local = addresses.length === 0 ? `UDP port ${localPort} of this machine` : addresses.join(', ');
  return `${local} on the local network; UDP port ${p2pPort} towards the base station`;
}

function servicesLine({ tcpTunnels, udpTunnels }: Services, directory: string): string {
  const names = [...tcpTunnels.map(({ id, type }) => `${id} (${type})`), ...udpTunnels.map(({ id, type }) => `${id} (${type} over UDP)`)];
  return names.length === 0
    ? `none; to offer one:  svc device --tunnel web=http:127.0.0.1:8080${dataOption('device', directory)}`
    : shortened(names);
}

function usersLine({ users }: Iam): string {
  const names = users
    .filter(({ fingerprints }) => fingerprints.length > 0)
    .map(({ username, role }) => `${username} (${role ?? 'no role'})`);
  return names.length === 0 ? 'none yet' : shortened(names);
}

function shortened(names: readonly string[]): string {
  const more = names.length - SHOWN;
  return more > 0 ? `${names.slice(0, SHOWN).join(', ')} and ${more} more` : names.join(', ');
}

/** The pairing string for the first user; undefined where no pairing mode is on. */
function codeOf({ invitation, open, plain }: Pairings, iam: Iam): PairingString | undefined {
  const local = pairingOf(iam).some((mode) => mode.startsWith('Local'));
  return invitation ?? open ?? (local ? plain : undefined);
}

function nextLines(opened: OpenDevice, services: Services, heard: Heard | null, code: PairingString | undefined): string[] {
  const { device, data, state, access } = opened;
  const next =
    heard?.event === 'UNKNOWN_FINGERPRINT'
      ? [
          'register it  at the base station, with its data directory; the product only if it is missing:',
          ...registration(state, device.deviceFingerprint),
        ]
      : [];
  if (code !== undefined) return [...next, ...pairLines(state, code)];
  if (state.OwnerInvited === true && !hasUsers(access.iam))
    return [...next, `next         svc pair -  on a client, with the string that  ${inviteCommand(data.directory)}  printed here`];
  if (hasUsers(access.iam) && isAdministered(access.iam))
    return [...next, `next         ${useLine(state, services)}, on a client that is paired`];
  if (hasUsers(access.iam)) return [...next, `next         it has no administrator: stop it, and  ${inviteCommand(data.directory)}`];
  return [
    ...next,
    `next         no way to pair is on: stop it, and  svc device --pairing PasswordInvite${dataOption('device', data.directory)}`,
  ];
}

function pairLines(state: DeviceState, code: PairingString): string[] {
  const invited = code.username !== undefined;
  const how = invited ? '; it can be used once, and the next start here voids it' : '';
  return [
    `next         svc pair -${optionsToPair(state)}`,
    ...rootsNote(state.ServerRootCerts).map((note) => `             ${note}`),
    `             on a client; give it this line, or scan the code above${how}:`,
    encodePairingString(code),
  ];
}

function useLine({ ProductId, DeviceId }: DeviceState, { tcpTunnels, udpTunnels }: Services): string {
  const to = ` -d ${ProductId}.${DeviceId}`;
  const [tcp] = tcpTunnels;
  const [udp] = udpTunnels;
  if (tcp !== undefined) return commandLine('svc tunnel', [tcp.id], to);
  return udp === undefined ? `svc coap GET /thermostat${to}` : commandLine('svc tunnel', [udp.id], ` --udp${to}`);
}
