/**
 * The base station of a client command: from the options, else from the pairing string, else as remembered with the
 * device. Its fingerprint has the same sources; one that the station has proved is never replaced silently: a person
 * states another one, or accepts that of a pairing string with --replace.
 */
import type { ConnectionOptions } from '../../client/node.ts';
import type { PairingString } from '../../protocol/records/index.ts';
import { NO_FINGERPRINT, serverUrl } from '../frame/arguments.ts';
import { CommandError, UsageError } from '../frame/errors.ts';
import { commandLine, shellWord, stateOption } from '../frame/shell-word.ts';
import { idOf, type Known, type KnownDevice, type KnownStation, NO_STATION, stationKey } from './known.ts';

/** A base station: pinned, or, where the fingerprint is null, authenticated by TLS. */
export interface TargetStation {
  readonly url: string;
  readonly fingerprint: string | null;
  /** PEM; empty: the roots of Node. */
  readonly roots: string;
  /** What was known of this URL, where a person replaces it by another proof. */
  readonly replaces?: KnownStation;
}

/** Source of the base station's address. */
export type StationSource = 'option' | 'pairing string' | 'state';

export interface StationFlags {
  server?: string;
  serverFingerprint?: string;
  /** PEM. */
  rootCerts?: string;
  /** State directory, as it was given. */
  state?: string;
}

/** Sources of a base station besides the options. */
export interface StationKnowledge {
  readonly pairing?: PairingString | undefined;
  readonly device?: KnownDevice | undefined;
  /** Whether the device is reached without one: a remembered one is ignored. */
  readonly optional?: boolean;
  /** Whether the person accepts another proof from the pairing string than the base station has shown. */
  readonly replace?: boolean;
}

/** Returns the base station to use; undefined without one. @throws UsageError, CommandError */
export function resolveServer(options: StationFlags, knowledge: StationKnowledge, known: Known): TargetStation | undefined {
  const { serverFingerprint, rootCerts } = options;
  if (serverFingerprint !== undefined && serverFingerprint !== NO_FINGERPRINT && rootCerts !== undefined)
    throw new UsageError('--root-certs has no effect with --server-fingerprint: give one of them');
  const url = urlOf(options, knowledge);
  if (url === undefined) {
    for (const [name, value] of Object.entries({ 'server-fingerprint': serverFingerprint, 'root-certs': rootCerts })) {
      if (value !== undefined && knowledge.device?.ServerUrl === undefined) throw new UsageError(`--${name} needs --server`);
    }
    return undefined;
  }
  const before = known.station(url);
  const found = { url, fingerprint: proofOf(url, options, knowledge, known), roots: rootCerts ?? before?.Roots ?? '' };
  const onPurpose = isStated(options) || knowledge.replace === true;
  const isOther = before !== undefined && stationKey(url, before) !== keyOf(found);
  return { ...found, ...(onPurpose && isOther && { replaces: before }) };
}

/** The key of the tokens for this base station. */
export function keyOf({ url, fingerprint }: TargetStation): string {
  return fingerprint ?? url;
}

/** Whether options say how the base station is proved. */
function isStated({ serverFingerprint, rootCerts }: StationFlags): boolean {
  return serverFingerprint !== undefined || rootCerts !== undefined;
}

/** Returns the fingerprint of the base station; null: TLS authenticates it. @throws CommandError */
function proofOf(url: string, options: StationFlags, knowledge: StationKnowledge, known: Known): string | null {
  const { serverFingerprint, rootCerts } = options;
  if (serverFingerprint === NO_FINGERPRINT) return null;
  const stated = serverFingerprint ?? (rootCerts === undefined ? fingerprintOfString(url, knowledge, known) : undefined);
  const remembered = known.station(url)?.Fingerprint;
  const isProved = known.station(url)?.Seen === true && knowledge.replace !== true;
  const forget = `\`svc forget --station ${shellWord(url)}${stateOption(options.state)}\``;
  if (isProved && serverFingerprint === undefined && stated !== undefined && remembered !== stated) {
    throw new CommandError(
      `${url} is known with another fingerprint (${remembered}) than the pairing string has (${stated}): compare both with that of the base station; if its key was changed, \`svc pair -${stateOption(options.state)} --replace\` accepts that of the string, or ${forget} forgets the known one`,
    );
  }
  if (isProved && rootCerts !== undefined) {
    throw new CommandError(`${url} is pinned by its fingerprint, which --root-certs does not replace: for TLS instead, ${forget} first`);
  }
  // Given roots take precedence over a fingerprint that was never proved.
  return stated ?? (rootCerts === undefined ? (remembered ?? fingerprintElsewhere(url, knowledge, known)) : undefined) ?? null;
}

/**
 * Returns the fingerprint in the pairing string, even with --server, which may be another address of the same base
 * station. A string made by an attacker must not replace authentication by TLS with the attacker's key.
 */
function fingerprintOfString(url: string, { pairing }: StationKnowledge, known: Known): string | undefined {
  return known.station(url)?.Roots === undefined ? pairing?.serverFingerprint : undefined;
}

/**
 * Returns the fingerprint of a known device's base station at a new address: its key identifies it at any address. A
 * pairing string states its own proof.
 */
function fingerprintElsewhere(url: string, { device, pairing }: StationKnowledge, known: Known): string | undefined {
  const { ServerUrl: before } = device ?? {};
  return before !== undefined && pairing === undefined && known.station(url)?.Roots === undefined && known.station(before)?.Seen === true
    ? known.station(before)?.Fingerprint
    : undefined;
}

/**
 * Returns the remembered server connect token of a device for this base station. One whose base station is not known
 * goes to the one that a person states, and follows where a person replaces the key of a known one; a pairing string,
 * which an attacker may have made, moves none.
 * @param server to be used
 */
export function rememberedToken(
  device: KnownDevice | undefined,
  server: TargetStation | undefined,
  options: StationFlags,
): string | undefined {
  if (device?.Tokens === undefined || server === undefined) return undefined;
  const { Tokens } = device;
  const own = Tokens[keyOf(server)];
  if (own !== undefined || !(isStated(options) || options.server !== undefined)) return own;
  return (server.replaces === undefined ? undefined : Tokens[stationKey(server.url, server.replaces)]) ?? Tokens[NO_STATION];
}

/**
 * Returns what to remember of a token that the device has named as this user's: it belongs to the base station that it
 * came through, unless it is known as another one's, which relays for this one, or was this device's before. One that
 * came without any stays where it is: a pairing string may name a base station that has proved nothing.
 * @param place `reached`: the connection came through that base station, which has the key `station`
 */
export function tokenOfUser(
  token: string,
  { station, reached }: { readonly station: string; readonly reached: boolean },
  { Tokens = {} }: KnownDevice,
): Pick<KnownDevice, 'Tokens'> {
  const elsewhere = Object.entries(Tokens).some(([key, each]) => each === token && key !== station && !(reached && key === NO_STATION));
  return elsewhere ? {} : { Tokens: { [station]: token } };
}

/**
 * Says that another base station is used than the remembered one of the device, and how to return; undefined where it
 * is the same.
 */
export function otherStation(
  device: KnownDevice | undefined,
  server: TargetStation | undefined,
  known: Known,
  state: string | undefined,
): string | undefined {
  if (server === undefined || device?.ServerUrl === undefined) return undefined;
  const { ServerUrl: before } = device;
  if (server.url === before || known.stationKeyOf(device) === keyOf(server)) return undefined;
  const back = commandLine('svc pair', [device.Name ?? idOf(device)], ` --server ${shellWord(before)}${stateOption(state)}`);
  return `${idOf(device)}: the base station ${server.url} is used instead of ${before}; \`${back}\` returns to that one`;
}

/** Source of the base station's address that {@link resolveServer} returns. */
export function sourceOf({ server }: StationFlags, { pairing }: StationKnowledge): StationSource {
  if (server !== undefined) return 'option';
  return pairing?.server === undefined ? 'state' : 'pairing string';
}

/**
 * Whether a base station replaces the remembered one of a device. One from a pairing string, which may be mistyped, and
 * that was not reached does not replace one that was.
 */
export function isToBeRemembered(
  { url, from, reached }: { readonly url: string; readonly from: StationSource; readonly reached: boolean },
  device: KnownDevice | undefined,
  known: Known,
): boolean {
  const { ServerUrl: before } = device ?? {};
  if (from !== 'pairing string' || reached || before === undefined || before === url) return true;
  return known.station(before)?.Seen !== true && known.station(before)?.Roots === undefined;
}

function urlOf({ server }: StationFlags, { pairing, device, optional = false }: StationKnowledge): string | undefined {
  if (server !== undefined) return server;
  if (pairing?.server !== undefined) return urlOfString(pairing.server);
  return optional ? undefined : device?.ServerUrl;
}

function urlOfString(server: string): string {
  try {
    return serverUrl(`https://${server}`);
  } catch {
    throw new UsageError(`the pairing string names a base station with an invalid address (${server}): give it with --server`);
  }
}

/** The base station as options of a connection. */
export function stationOptions({ url, fingerprint, roots }: TargetStation): ConnectionOptions {
  if (fingerprint !== null) return { ServerUrl: url, ServerFingerprint: fingerprint };
  return { ServerUrl: url, ...(roots !== '' && { RootCerts: roots }) };
}
