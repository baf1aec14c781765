/**
 * Parsers of option values, for commander. Each returns the value or throws InvalidArgumentError that names the
 * expected form; commander adds the option's name.
 */
import { isIP } from 'node:net';
import { InvalidArgumentError, Option } from 'commander';
import { checkRootCertificates } from '../../platform/node/index.ts';
import { isFingerprint, MAX_CERTIFICATES } from '../../protocol/identity/index.ts';
import { keepAliveProfiles } from '../../protocol/keep-alive/index.ts';
import { isId } from '../../protocol/records/index.ts';
import { parseServerUrl, parseWebSocketUrl } from '../../runtime/station/index.ts';
import { systemProblem } from './errors.ts';
import { readSmallFile } from './given-file.ts';

export interface HostPort {
  readonly host: string;
  readonly port: number;
}

/** A port to connect to: 1 to 65535. */
export function port(text: string): number {
  return integer(text, 1, 65535, 'a port is a number from 1 to 65535');
}

/** A port to listen on: 0 to 65535, 0 takes a free one. */
export function listenPort(text: string): number {
  return integer(text, 0, 65535, 'a port is a number from 0 (a free one) to 65535');
}

/** A numeric IPv4 or IPv6 address, to listen on. */
export function address(text: string): string {
  if (isIP(text) === 0) throw new InvalidArgumentError('Expected a numeric IPv4 or IPv6 address, for example 127.0.0.1.');
  return text;
}

/** `host:port`, an IPv6 address in brackets. */
export function hostPort(text: string): HostPort {
  const match = /^(?:\[([0-9A-Fa-f:.%a-z]+)\]|([^:[\]\s/]+)):(\d{1,5})$/.exec(text);
  const host = match?.[1] ?? match?.[2];
  const number = Number(match?.[3]);
  if (host === undefined || number < 1 || number > 65535)
    throw new InvalidArgumentError('Expected host:port with a port from 1 to 65535, for example 192.168.1.7:5592 or [fe80::1]:5592.');
  return { host, port: number };
}

/** `https://host[:port]` of a base station, or `host[:port]`. Returns the URL without a trailing slash. */
export function serverUrl(text: string): string {
  const address = parseServerUrl(text.includes('://') ? text : `https://${text}`);
  if (address === null) throw new InvalidArgumentError('Expected host, host:port or https://host:port.');
  return address.origin;
}

export const SERVER_WEBSOCKET_HELP =
  'WebSocket to the base station where UDP is blocked, wss://host/path (default: /svc/v1 at --server); HTTPS_PROXY and NO_PROXY apply';

/** `wss://` or `ws://` of a base station. Returns it in its usual form. */
export function webSocketUrl(text: string): string {
  const url = parseWebSocketUrl(text);
  if (url === null) throw new InvalidArgumentError('Expected wss://host/path or ws://host/path, without a name, password or query.');
  return url;
}

/** A full fingerprint: 64 hexadecimal digits. Returns it in lower case. */
export function fingerprint(text: string): string {
  if (!isFingerprint(text.toLowerCase())) throw new InvalidArgumentError('A fingerprint is 64 hexadecimal digits.');
  return text.toLowerCase();
}

/** Value instead of a base station's fingerprint: TLS authenticates it, whatever was remembered. */
export const NO_FINGERPRINT = 'none';

/** A full fingerprint, or none. */
export function fingerprintOrNone(text: string): string {
  return text === NO_FINGERPRINT ? text : fingerprint(text);
}

export const ROOT_CERTS_HELP =
  "PEM file: root certificates for the TLS certificate of the base station, instead of Node's; remembered. Not with --server-fingerprint";

/** A PEM file of root certificates. Returns its text. */
export function rootCerts(file: string): string {
  try {
    return checkRootCertificates(new TextDecoder().decode(readSmallFile(file, MAX_CERTIFICATES)));
  } catch (error) {
    throw new InvalidArgumentError(`${file}: ${systemProblem(error) ?? (error as Error).message}.`);
  }
}

/** A product or device id: 1 to 61 letters, digits, `-` or `_`. */
export function id(text: string): string {
  if (!isId(text)) throw new InvalidArgumentError('An id is 1 to 61 letters, digits, "-" or "_".');
  return text;
}

/** A whole number of seconds, 1 to 3600, in milliseconds. */
export function seconds(text: string): number {
  return 1000 * integer(text, 1, 3600, 'expected 1 to 3600 seconds');
}

export const LINK_MTU_HELP = 'MTU of the network, if it is known to differ from 1500: the largest size of packets';

/** MTU of a link in bytes. */
export function linkMtu(text: string): number {
  return integer(text, 1280, 65535, 'the MTU of a link is a number from 1280 to 65535');
}

export const HARD_NAT_HELP = 'do not open 256 sockets and do not try 1,024 ports where a NAT assigns random ones';

/**
 * `--no-candidates-on`; commander drops `no-` from the name and puts the values in `candidatesOn`.
 * @param peer the end that does not learn the addresses
 */
export function noCandidatesOn(peer: 'device' | 'client'): Option {
  return new Option(
    '--no-candidates-on <interface>',
    `do not offer the addresses of a network interface to the ${peer} for direct paths; repeatable`,
  )
    .argParser(collect(interfaceName))
    .default([], 'none');
}

/** `--keep-alive-profile`. @param what is kept alive */
export function keepAliveProfile(what: string): Option {
  return new Option(
    '--keep-alive-profile <profile>',
    `how often ${what} is kept alive: live, every 10 s; balanced, as rarely as the NAT allows, 55 s at most; eco, the same, 114 s at most (default: balanced)`,
  ).choices(keepAliveProfiles);
}

function interfaceName(text: string): string {
  if (text === '' || text.startsWith('-')) throw new InvalidArgumentError('Expected the name of an interface, such as eth0.');
  return text;
}

/** For repeatable options: appends the result of `parse`. */
export function collect<T>(parse: (text: string) => T): (text: string, previous: T[] | undefined) => T[] {
  return (text, previous) => [...(previous ?? []), parse(text)];
}

/** A whole number from `min` to `max`. */
export function integer(text: string, min: number, max: number, expectation: string): number {
  const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= min && value <= max)) throw new InvalidArgumentError(`${expectation[0]?.toUpperCase()}${expectation.slice(1)}.`);
  return value;
}
