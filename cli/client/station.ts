/**
 * The base station of a client command: from the options, else from the pairing string, else as remembered with the
 * device. Its fingerprint has the same sources; one that the station has proved is never replaced silently.
 */
import type { ConnectionOptions } from '../../client/node.ts';
import type { PairingString } from '../../protocol/records/index.ts';
import { NO_FINGERPRINT, serverUrl } from '../frame/arguments.ts';
import { CommandError, UsageError } from '../frame/errors.ts';
import type { Known, KnownDevice } from './known.ts';

/** A base station: pinned, or, where the fingerprint is null, authenticated by TLS. */
export interface TargetStation {
  readonly url: string;
  readonly fingerprint: string | null;
  /** PEM; empty: the roots of Node. */
  readonly roots: string;
}

/** Source of the base station's address. */
export type StationSource = 'option' | 'pairing string' | 'state';

export interface StationFlags {
  server?: string;
  serverFingerprint?: string;
  /** PEM. */
  rootCerts?: string;
}

/** Sources of a base station besides the options. */
export interface StationKnowledge {
  readonly pairing?: PairingString | undefined;
  readonly device?: KnownDevice | undefined;
  /** Whether the device is reached without one: a remembered one is ignored. */
  readonly optional?: boolean;
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
  if (serverFingerprint === NO_FINGERPRINT) return { url, fingerprint: null, roots: rootCerts ?? known.station(url)?.Roots ?? '' };
  const stated = serverFingerprint ?? (rootCerts === undefined ? fingerprintOfString(url, knowledge, known) : undefined);
  const remembered = known.station(url)?.Fingerprint;
  const onPurpose = `remove it from ${known.directory}/known.json`;
  if (stated !== undefined && remembered !== stated && known.station(url)?.Seen === true) {
    const who = serverFingerprint === undefined ? 'the pairing string has' : 'you gave';
    throw new CommandError(
      `${url} is known with another fingerprint (${remembered}) than ${who} (${stated}): compare both with that of the base station; if its key was changed, ${onPurpose}`,
    );
  }
  if (rootCerts !== undefined && known.station(url)?.Seen === true) {
    throw new CommandError(`${url} is pinned by its fingerprint, which --root-certs does not replace: for TLS instead, ${onPurpose}`);
  }
  // Given roots take precedence over a fingerprint that was never proved.
  const fingerprint = stated ?? (rootCerts === undefined ? (remembered ?? fingerprintElsewhere(url, knowledge, known)) : undefined) ?? null;
  return { url, fingerprint, roots: rootCerts ?? known.station(url)?.Roots ?? '' };
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
 * Returns the remembered server connect token of a device, only for the base station that it belongs to. A pairing
 * string may name another one, which must not learn it.
 * @param server to be used
 * @param from source of its address
 */
export function rememberedToken(
  device: KnownDevice | undefined,
  server: TargetStation | undefined,
  from: StationSource,
  known: Known,
): string | undefined {
  if (device === undefined || server === undefined || from !== 'pairing string') return device?.ServerConnectToken;
  const { ServerUrl: url = server.url, ServerConnectToken: token } = device;
  const sameKey =
    server.fingerprint !== null && known.station(url)?.Seen === true && known.station(url)?.Fingerprint === server.fingerprint;
  return url === server.url || sameKey ? token : undefined;
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
