/** Names of a base station in pairing strings and printed commands. */
import { isHostPort, type PairingString } from '../../protocol/records/index.ts';
import { shellWord } from './shell-word.ts';

/** Name of the file of root certificates in printed commands. */
const ROOTS_FILE = 'roots.pem';

/**
 * The line that explains the file of a printed command; none where no roots are kept.
 * @param roots as in {@link NamedStation}
 */
export function rootsNote(roots: string | undefined): string[] {
  return roots ? [`(${ROOTS_FILE} is a copy of the file that --root-certs was given)`] : [];
}

/** A known base station. */
export interface NamedStation {
  readonly url: string;
  /** Undefined if TLS authenticates it. */
  readonly fingerprint: string | undefined;
  /** PEM; undefined or empty: the roots of Node. */
  readonly roots: string | undefined;
  /** URL of the WebSocket to it; undefined: derived from its own. */
  readonly webSocket: string | undefined;
}

/** The part of a pairing string about a base station: nothing where the string cannot name it. */
export function stationOfPairing({
  url,
  fingerprint,
}: Pick<NamedStation, 'url' | 'fingerprint'>): Pick<PairingString, 'server' | 'serverFingerprint'> {
  const server = hostPortOf(url);
  if (!isHostPort(server)) return {};
  return { server, ...(fingerprint !== undefined && { serverFingerprint: fingerprint }) };
}

/** The options that a client needs in addition to such a pairing string, each after a blank; usually none. */
export function optionsBeside(station: NamedStation): string {
  const { url, fingerprint, roots, webSocket } = station;
  if (!isHostPort(hostPortOf(url))) return ` ${serverOptions(station)}`;
  const byRoots = roots && fingerprint === undefined ? ` --root-certs ${ROOTS_FILE}` : '';
  return `${byRoots}${webSocketOption(webSocket)}`;
}

/** The options by which a client finds and authenticates a base station. */
export function serverOptions({ url, fingerprint, roots, webSocket }: NamedStation): string {
  const byRoots = roots ? ` --root-certs ${ROOTS_FILE}` : '';
  const proof = fingerprint === undefined ? byRoots : ` --server-fingerprint ${fingerprint}`;
  return `--server ${shellWord(url)}${proof}${webSocketOption(webSocket)}`;
}

function webSocketOption(webSocket: string | undefined): string {
  return webSocket === undefined ? '' : ` --server-websocket ${shellWord(webSocket)}`;
}

/** @param url in the form of options and state directories: `https://host:port` */
function hostPortOf(url: string): string {
  return url.replace(/^https:\/\//, '');
}
