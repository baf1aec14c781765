/**
 * Settings of a device before start: identity, names, base station, ports. Each check validates one value;
 * `DeviceSetup` decides when it may be set.
 */

import type { Environment } from '../platform/environment.ts';
import { text as anyText, check, flag, oneOf, whole } from '../protocol/arguments.ts';
import { MAX_APP_TEXT } from '../protocol/control/index.ts';
import type { CryptoProvider, PrivateKey } from '../protocol/crypto-provider.ts';
import { LocalError } from '../protocol/errors/index.ts';
import { decodePrivateKey, encodePrivateKey, isFingerprint } from '../protocol/identity/index.ts';
import { defaultProfile, type KeepAliveProfile, keepAliveProfiles } from '../protocol/keep-alive/index.ts';
import { checkIds, isId } from '../protocol/records/index.ts';
import {
  type ConfiguredStation,
  DEFAULT_SERVER_PORT,
  parseWebSocketUrl,
  parseServerUrl as stationAddress,
} from '../runtime/station/index.ts';
import { defaultRendezvous, type RendezvousSettings } from './rendezvous-options.ts';

/** Default ports; `setLocalPort` and `setP2pPort` change them. */
export const DEFAULT_LOCAL_PORT = 5592;
export const DEFAULT_P2P_PORT = 5593;

export class Settings {
  productId: string | null = null;
  deviceId: string | null = null;
  appName: string | null = null;
  appVersion: string | null = null;
  serverHost: string | null = null;
  serverPort = DEFAULT_SERVER_PORT;
  serverFingerprint: string | null = null;
  rootCerts: string | null = null;
  serverWebSocketUrl: string | null = null;
  serverWebSocketVerify = false;
  identity: PrivateKey | null = null;
  localPort = DEFAULT_LOCAL_PORT;
  p2pPort = DEFAULT_P2P_PORT;
  attach = true;
  rendezvous: RendezvousSettings = defaultRendezvous;
  keepAliveProfile: KeepAliveProfile = defaultProfile;
}

/** The complete identity of a started device. */
export interface Identity {
  readonly productId: string;
  readonly deviceId: string;
  readonly key: PrivateKey;
}

/** @throws LocalError INVALID_STATE when the key or an id is missing; INVALID_ARGUMENT for ids too long together */
export function requireIdentity({ productId, deviceId, identity }: Settings): Identity {
  if (productId === null) throw missing('product id', 'productId');
  if (deviceId === null) throw missing('device id', 'deviceId');
  if (identity === null) throw missing('private key', 'privateKey');
  checkIds(productId, deviceId);
  return { productId, deviceId, key: identity };
}

/**
 * Returns the base station, pinned or to be authenticated by TLS.
 * @throws LocalError INVALID_STATE when its address is missing; when there are root certificates with the pin, where
 *   they have no effect unless the certificate of a WebSocket must be valid; when there is no pin and the platform has
 *   no https
 */
export function requireStation(
  { serverHost, serverPort, serverFingerprint, rootCerts, serverWebSocketUrl, serverWebSocketVerify }: Settings,
  { getHttps }: Pick<Environment, 'getHttps'>,
): ConfiguredStation {
  if (serverHost === null) throw missing('server URL', 'serverUrl', ', or set basestationAttach to false');
  const webSocket = { verifyCertificate: serverWebSocketVerify, ...(serverWebSocketUrl !== null && { url: serverWebSocketUrl }) };
  const station = { host: serverHost, port: serverPort, fingerprint: serverFingerprint, webSocket };
  if (rootCerts === null) {
    if (serverFingerprint === null && getHttps === undefined) throw missing('fingerprint of the base station', 'serverFingerprint');
    return station;
  }
  if (serverFingerprint !== null && !serverWebSocketVerify)
    throw new LocalError('INVALID_STATE', 'root certificates have no effect with the fingerprint of the base station: set one of them');
  return { ...station, rootCerts };
}

/** Checks a product or device id. @throws LocalError INVALID_ARGUMENT unless 1 to 61 letters, digits, `-` or `_` */
export function checkId(kind: string, id: string): string {
  if (!isId(id)) throw new LocalError('INVALID_ARGUMENT', `the ${kind} must be 1 to 61 letters, digits, "-" or "_"`);
  return id;
}

/** @throws LocalError INVALID_ARGUMENT; STRING_TOO_LONG over 32 bytes */
export function checkAppText(kind: string, text: string): string {
  check(`the ${kind}`, text, anyText);
  if (new TextEncoder().encode(text).length > MAX_APP_TEXT)
    throw new LocalError('STRING_TOO_LONG', `the ${kind} is longer than ${MAX_APP_TEXT} bytes`);
  return text;
}

/** @throws LocalError INVALID_ARGUMENT outside 0 to 65535 */
export function checkPort(kind: string, port: number): number {
  check(`the ${kind}`, port, whole(0, 0xffff));
  return port;
}

/** @throws LocalError INVALID_ARGUMENT for an unknown profile */
export function checkProfile(profile: KeepAliveProfile): KeepAliveProfile {
  check('the keep-alive profile', profile, oneOf(keepAliveProfiles));
  return profile;
}

/** Checks a limit. @throws LocalError INVALID_ARGUMENT unless a whole number from `least` */
export function checkLimit(kind: string, limit: number, least = 0): number {
  check(`the limit of ${kind}`, limit, whole(least));
  return limit;
}

/** @throws LocalError INVALID_ARGUMENT unless 64 hexadecimal digits */
export function checkFingerprint(text: string): string {
  check('the fingerprint', text, anyText);
  const fingerprint = text.toLowerCase();
  if (!isFingerprint(fingerprint)) throw new LocalError('INVALID_ARGUMENT', 'a fingerprint is 64 hexadecimal digits');
  return fingerprint;
}

/**
 * Parses `https://host[:port]` or `host[:port]`, nothing else; an IPv6 address in brackets.
 * @throws LocalError INVALID_ARGUMENT
 */
export function parseServerUrl(url: string): { host: string; port?: number } {
  check('the server URL', url, anyText);
  const address = stationAddress(url.includes('://') ? url : `https://${url}`);
  if (address === null) throw new LocalError('INVALID_ARGUMENT', 'the server URL must be https://host or https://host:port');
  const { host, port } = address;
  return port === null ? { host } : { host, port };
}

/**
 * @param text null: none is set
 * @throws LocalError INVALID_ARGUMENT for an invalid URL, or one that might hold a secret; for a `verify` of another
 *   type, or with `ws://`
 */
export function checkWebSocket(text: string | null, verify: boolean): Pick<Settings, 'serverWebSocketUrl' | 'serverWebSocketVerify'> {
  check('verify of the WebSocket URL', verify, flag);
  if (text !== null) check('the URL of the WebSocket', text, anyText);
  const serverWebSocketUrl = text === null ? null : parseWebSocketUrl(text);
  if (verify && serverWebSocketUrl?.startsWith('ws:'))
    throw new LocalError('INVALID_ARGUMENT', 'a ws:// URL has no certificate to verify: give a wss:// URL');
  if (serverWebSocketUrl !== null || text === null) return { serverWebSocketUrl, serverWebSocketVerify: verify };
  throw new LocalError(
    'INVALID_ARGUMENT',
    'the URL of the WebSocket must be wss://host/path or ws://host/path, without a name, password or query',
  );
}

/** @param option its name; the setter has the same name */
function missing(what: string, option: string, otherwise = ''): LocalError {
  const setter = `set${option[0]?.toUpperCase()}${option.slice(1)}`;
  return new LocalError(
    'INVALID_STATE',
    `the device has no ${what}: give the option ${option}, or call ${setter}, before start${otherwise}`,
  );
}

/** Imports a private key from PKCS#8 PEM. @throws LocalError INVALID_ARGUMENT */
export function importPrivateKey(crypto: CryptoProvider, pem: string): PrivateKey {
  const raw = decodePrivateKey(pem);
  const key = crypto.importKey(raw);
  raw.fill(0);
  return key;
}

/** Returns a fresh private key as PKCS#8 PEM. */
export function createPrivateKey(crypto: CryptoProvider): string {
  const key = crypto.generateKey();
  const raw = key.export();
  const pem = encodePrivateKey(raw);
  raw.fill(0);
  key.wipe();
  return pem;
}

/** Derives 32 bytes from the identity key: the same after every restart (PROTOCOL.md §2, Reset, and §8). */
export function derivedSecret(crypto: Pick<CryptoProvider, 'hmacSha256'>, key: PrivateKey, purpose: string): Uint8Array {
  const raw = key.export();
  const secret = crypto.hmacSha256(raw, new TextEncoder().encode(purpose));
  raw.fill(0);
  return secret;
}
