/**
 * The options of a connection: the keys of the specification, their rules and their defaults.
 *
 * Options are an object or JSON text and may be set several times: later ones are merged over earlier ones. A call with
 * a value of the wrong type or an unknown key changes nothing. The effects of the options are implemented elsewhere.
 */
import { checkOptions, flag, type Kind, nonEmptyText, oneOf, whole } from '../protocol/arguments.ts';
import { utf8Length } from '../protocol/cbor/index.ts';
import { MAX_APP_TEXT, MAX_JWT } from '../protocol/control/index.ts';
import { defined } from '../protocol/defined.ts';
import { LocalError } from '../protocol/errors/index.ts';
import { checkCertificates, isFingerprint } from '../protocol/identity/index.ts';

import { defaultProfile, type KeepAliveProfile, keepAliveProfiles } from '../protocol/keep-alive/index.ts';
import type { KeepAliveWish } from '../runtime/keep-alive/index.ts';
import { DEFAULT_SERVER_PORT, parseServerUrl, parseWebSocketUrl } from '../runtime/station/index.ts';

/** Keys and types are the specification's; from DeviceFingerprint on they are our own. */
export interface ConnectionOptions {
  /** Private key of this client: PKCS#8 PEM, as returned by `SvcClient.createPrivateKey`. Required. */
  PrivateKey?: string;
  /**
   * Id of the device. Required together with DeviceId for the local and the remote channel; direct candidates do
   * without.
   */
  ProductId?: string;
  DeviceId?: string;
  /** `https://host[:port]` of the base station; with ServerFingerprint the port is that of UDP. Default port 4433. */
  ServerUrl?: string;
  /** Admission at the base station: one of the three is required for the remote channel. */
  ServerKey?: string;
  /**
   * Token of an issuer (JWT), in addition to a ServerKey that requires one; or a function that returns a fresh one for
   * each connect, called when it is needed. With a server connect token, base stations ignore it.
   */
  ServerJwtToken?: string | (() => string | Promise<string>);
  ServerConnectToken?: string;
  /** Name and version of the application, at most 32 bytes of UTF-8 each. The base station logs them. */
  AppName?: string;
  AppVersion?: string;
  /**
   * How often the connection, and this client's channel to the base station, are kept alive. `live`: every 10 s; a lost
   * peer is noticed within 15 s. `balanced`, the default: as rarely as the NAT was found to allow, 55 s at most, and 25
   * s until that is known. `eco`: the same, 114 s at most. With connections of several profiles, the channel uses the
   * most frequent one.
   */
  KeepAliveProfile?: KeepAliveProfile;
  /** Keep-alive of the connection: ms, ms, count; each overrides that of the profile. */
  KeepAliveInterval?: number;
  KeepAliveRetryInterval?: number;
  KeepAliveMaxRetries?: number;
  /**
   * Longest time for one handshake, ms, with the acknowledgement of a device that is near its limit of connections; on
   * the local network 2.5 s at most.
   */
  DtlsHelloTimeout?: number;
  /** Longest time for the whole `connect`, ms. */
  ConnectTimeout?: number;
  /**
   * The channel over the local network: finds the device by multicast DNS, which needs neither a base station nor the
   * internet. The query reveals the device's ids in whatever network this host is. Without multicast DNS (a browser)
   * the channel is off.
   */
  Local?: boolean;
  /** The channel through the base station. */
  Remote?: boolean;
  /** Searches for a direct path while the connection is relayed, and migrates to it. Default true. */
  Rendezvous?: boolean;
  /** Opens 256 sockets, or tries 1,024 ports of the peer, where a NAT assigns random ports. Default true. */
  HardNat?: boolean;
  /**
   * The local channel listens to all devices and picks the one whose TXT record has the ids, instead of querying this
   * one.
   */
  ScanLocalConnect?: boolean;
  /**
   * Waits until ConnectTimeout for a device that is not attached to the base station; the event WAITING_FOR_ATTACH
   * reports it. A base station that does not answer still makes the connect fail; once it has said that the device is
   * not attached, the wait survives interruptions.
   */
  IgnoreDeviceNotAttached?: boolean;
  /** Longest search of the local channel for the device, ms; experimental in the specification. */
  MdnsTimeout?: number;
  /**
   * Pin of the device: full hex fingerprint. With it `connect` fails with FINGERPRINT_MISMATCH when another key
   * answers.
   */
  DeviceFingerprint?: string;
  /**
   * Pin of the base station: full hex fingerprint. Without it TLS authenticates the base station, where the platform
   * has https; a browser needs the pin.
   */
  ServerFingerprint?: string;
  /**
   * PEM: roots that authenticate a base station without pin, instead of the platform's. With a pin `connect` refuses
   * them, unless ServerWebSocketVerify is set.
   */
  RootCerts?: string;
  /**
   * `wss://` or `ws://` URL of the WebSocket to the base station, used where UDP is silent: behind a reverse proxy, for
   * example. Default: `/svc/v1` at host and port of ServerUrl, with TLS or without.
   */
  ServerWebSocketUrl?: string;
  /**
   * The certificate of that WebSocket must be valid. Default false: the base station proves its key inside the
   * WebSocket, and companies replace certificates. `connect` refuses it with a `ws://` ServerWebSocketUrl, which has no
   * certificate.
   */
  ServerWebSocketVerify?: boolean;
}

/** Options with their defaults filled in. */
export type EffectiveOptions = ConnectionOptions & Required<Pick<ConnectionOptions, keyof typeof DEFAULTS>>;

const DEFAULTS = {
  KeepAliveProfile: defaultProfile,
  DtlsHelloTimeout: 10_000,
  ConnectTimeout: 120_000,
  Local: true,
  Remote: true,
  Rendezvous: true,
  HardNat: true,
  ScanLocalConnect: false,
  IgnoreDeviceNotAttached: false,
  MdnsTimeout: 2_000,
  ServerWebSocketVerify: false,
} as const satisfies ConnectionOptions;

const appText: Kind = [
  (value) => nonEmptyText[0](value) && utf8Length(value as string) <= MAX_APP_TEXT,
  `a text of at most ${MAX_APP_TEXT} bytes`,
];
const milliseconds: Kind = [whole(1, 0x7fff_ffff)[0], 'whole milliseconds from 1'];
const fingerprint: Kind = [(value) => typeof value === 'string' && isFingerprint(value), '64 lower-case hexadecimal digits'];
const serverUrl: Kind = [(value) => typeof value === 'string' && parseServerUrl(value) !== null, 'https://host or https://host:port'];
const webSocketUrl: Kind = [
  (value) => typeof value === 'string' && parseWebSocketUrl(value) !== null,
  'wss://host/path or ws://host/path, without a name, password or query',
];
const certificates: Kind = [(value) => checkCertificates(value as string) === value, 'PEM text of one certificate or more'];

const JWT_FORM = `a JWT: three parts of letters, digits, "-" and "_" with dots between them, at most ${MAX_JWT} characters`;

const KINDS: Record<keyof ConnectionOptions, Kind> = {
  PrivateKey: [nonEmptyText[0], 'PEM text'],
  ProductId: nonEmptyText,
  DeviceId: nonEmptyText,
  ServerUrl: serverUrl,
  ServerKey: nonEmptyText,
  ServerJwtToken: [(value) => typeof value === 'function' || isJwt(value), JWT_FORM],
  ServerConnectToken: nonEmptyText,
  AppName: appText,
  AppVersion: appText,
  KeepAliveProfile: oneOf(keepAliveProfiles),
  KeepAliveInterval: milliseconds,
  KeepAliveRetryInterval: milliseconds,
  KeepAliveMaxRetries: whole(0),
  DtlsHelloTimeout: milliseconds,
  ConnectTimeout: milliseconds,
  Local: flag,
  Remote: flag,
  Rendezvous: flag,
  HardNat: flag,
  ScanLocalConnect: flag,
  IgnoreDeviceNotAttached: flag,
  MdnsTimeout: milliseconds,
  DeviceFingerprint: fingerprint,
  ServerFingerprint: fingerprint,
  RootCerts: certificates,
  ServerWebSocketUrl: webSocketUrl,
  ServerWebSocketVerify: flag,
};

/**
 * Returns `previous` with `update` merged over it.
 * @throws LocalError INVALID_ARGUMENT when `update` is not an object or JSON of one, has an unknown key or a value of
 *   the wrong type
 */
export function mergeOptions(previous: ConnectionOptions, update: ConnectionOptions | string): ConnectionOptions {
  const given = typeof update === 'string' ? parse(update) : update;
  checkOptions('a connection', given, KINDS);
  return { ...previous, ...defined(given) };
}

/** Options with defaults, for `connect`. */
export function effectiveOptions(options: ConnectionOptions): EffectiveOptions {
  return { ...DEFAULTS, ...options };
}

/** Keep-alive as set by the options. */
export function keepAliveWish(options: EffectiveOptions): Required<KeepAliveWish> {
  const {
    KeepAliveProfile: profile,
    KeepAliveInterval: interval,
    KeepAliveRetryInterval: retryInterval,
    KeepAliveMaxRetries: maxRetries,
  } = options;
  const explicit = {
    ...(interval !== undefined && { interval }),
    ...(retryInterval !== undefined && { retryInterval }),
    ...(maxRetries !== undefined && { maxRetries }),
  };
  return { profile, explicit };
}

/** Returns everything but the private key, and functions. */
export function publicOptions(options: ConnectionOptions): ConnectionOptions {
  const { PrivateKey: _, ServerJwtToken, ...shown } = effectiveOptions(options);
  return { ...shown, ...(typeof ServerJwtToken === 'string' && { ServerJwtToken }) };
}

/**
 * Returns the token of the option.
 * @throws LocalError INVALID_ARGUMENT when its function returns none; FAILED when it fails
 */
export async function currentJwt(given: NonNullable<ConnectionOptions['ServerJwtToken']>): Promise<string> {
  if (typeof given === 'string') return given;
  let token: unknown;
  try {
    token = await given();
  } catch (error) {
    const reason = error instanceof Error ? `: ${error.message}` : '';
    throw new LocalError('FAILED', `the function of ServerJwtToken failed${reason}`, { cause: error });
  }
  if (!isJwt(token)) throw invalid(`the function of ServerJwtToken returned no token: it must be ${JWT_FORM}`);
  return token;
}

/** Host and port of a ServerUrl. */
export function serverAddress(url: string): { host: string; port: number } {
  const { host = '', port = null } = parseServerUrl(url) ?? {};
  return { host, port: port ?? DEFAULT_SERVER_PORT };
}

function isJwt(value: unknown): value is string {
  return typeof value === 'string' && value.length <= MAX_JWT && /^[\w-]+\.[\w-]+\.[\w-]+$/.test(value);
}

function parse(json: string): ConnectionOptions {
  try {
    return JSON.parse(json);
  } catch {
    throw invalid('the connection options are not valid JSON');
  }
}

function invalid(message: string): LocalError {
  return new LocalError('INVALID_ARGUMENT', message);
}
