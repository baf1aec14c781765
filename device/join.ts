/**
 * Joins a base station: a device that the station does not know yet presents the token of a join string, and the
 * station accepts its key.
 *
 * The channel is authenticated first, by the fingerprint in the join string or by TLS, so that only the station sees
 * the token. The station binds the key that this channel's handshake proved. Store the key before you join: a join
 * whose answer was lost can be repeated with it until the invitation expires.
 */

import { anEnvironment, type Environment } from '../platform/environment.ts';
import { nodeEnvironment } from '../platform/node/index.ts';
import { checkOptions, type Kind, signal, text } from '../protocol/arguments.ts';
import { CONTENT_FORMAT_CBOR, DevicePath, decodeJoinAnswer, encodeJoinRequest, stationError } from '../protocol/control/index.ts';
import { LocalError, RemoteError } from '../protocol/errors/index.ts';
import { checkCertificates } from '../protocol/identity/index.ts';
import { areIds, checkIds, decodeJoinString, isId, type JoinString } from '../protocol/records/index.ts';
import { Host } from '../runtime/host/index.ts';
import type { Session } from '../runtime/session/index.ts';
import { type ConfiguredStation, DEFAULT_SERVER_PORT, StationConnector } from '../runtime/station/index.ts';
import { checkWebSocket, importPrivateKey, parseServerUrl } from './settings.ts';

/** Options of a join. */
export interface JoinOptions {
  /** The environment of the device; default Node. */
  readonly environment?: Environment;
  /** `svc://join#~…`, as printed by `svc admin device invite`. */
  readonly joinString: string;
  /** The device's key, PKCS#8 PEM. Store it before you join. */
  readonly privateKey: string;
  /** Only where the invitation leaves it open; by default the base station generates one. */
  readonly deviceId?: string;
  /** Another address of the base station than that in the join string: `https://host[:port]`. */
  readonly serverUrl?: string;
  /**
   * Roots that authenticate a base station whose fingerprint is not in the join string; PEM. Default: those of the
   * platform.
   */
  readonly rootCerts?: string;
  /** `wss://` or `ws://` to the base station where UDP is silent; default `/svc/v1` at its host and port. */
  readonly serverWebSocketUrl?: string;
  /** When it fires, the join ends with STOPPED; the station may have accepted it nevertheless. */
  readonly signal?: AbortSignal;
}

/** The device's identity and base station from now on: options of a `Device`. */
export interface JoinResult {
  readonly productId: string;
  readonly deviceId: string;
  readonly serverUrl: string;
  /** Absent: TLS authenticates the base station. */
  readonly serverFingerprint?: string;
}

const KINDS: Record<keyof JoinOptions, Kind> = {
  environment: anEnvironment,
  joinString: text,
  privateKey: text,
  deviceId: text,
  serverUrl: text,
  rootCerts: text,
  serverWebSocketUrl: text,
  signal,
};

/** ms for the answer. */
const ANSWER_TIMEOUT = 10_000;

/**
 * Makes one attempt, of at most 20 s. Repeat it with the same key when the answer was lost.
 * @throws LocalError INVALID_ARGUMENT (join string, key, URL or device id), STOPPED; RemoteError TOKEN_REJECTED
 *   (unknown, used by another key, expired or revoked), WRONG_PRODUCT_ID, WRONG_DEVICE_ID (not those of the
 *   invitation), DEVICE_ID_IN_USE, TOO_MANY_REQUESTS;
 *   FINGERPRINT_MISMATCH, CERTIFICATE_VALIDATION_FAILED, CONNECTION_REFUSED, DNS, TIMEOUT, BAD_RESPONSE
 */
export async function joinBaseStation(options: JoinOptions): Promise<JoinResult> {
  checkOptions('a join', options, KINDS, ['joinString', 'privateKey']);
  const join = decodeJoinString(options.joinString);
  const serverUrl = options.serverUrl ?? `https://${join.server}`;
  const station = stationOf(join, serverUrl, options);
  const deviceId = deviceIdOf(join, options.deviceId);
  const environment = options.environment ?? nodeEnvironment();
  const identity = importPrivateKey(environment.crypto, options.privateKey);
  const host = await Host.open(environment, { identity, binds: [{ port: 0 }] });
  const connector = new StationConnector({ host, station, identity });
  try {
    const joined = await connector.use((session) => request(session, join, deviceId, options.signal), {
      ...(options.signal !== undefined && { signal: options.signal }),
    });
    const { productId, serverFingerprint } = join;
    checkAnswer(productId, joined);
    return { productId, deviceId: joined, serverUrl, ...(serverFingerprint !== undefined && { serverFingerprint }) };
  } finally {
    // Not awaited: it would wait for a dial under way.
    void connector.close();
    await host.close();
    identity.wipe();
  }
}

function stationOf({ serverFingerprint }: JoinString, url: string, options: JoinOptions): ConfiguredStation {
  const { rootCerts, serverWebSocketUrl = null } = options;
  if (rootCerts !== undefined && serverFingerprint !== undefined)
    throw new LocalError('INVALID_ARGUMENT', 'root certificates have no effect: the join string has the fingerprint of the base station');
  const { host, port = DEFAULT_SERVER_PORT } = parseServerUrl(url);
  const { serverWebSocketUrl: webSocketUrl } = checkWebSocket(serverWebSocketUrl, false);
  return {
    host,
    port,
    fingerprint: serverFingerprint ?? null,
    ...(rootCerts !== undefined && { rootCerts: checkCertificates(rootCerts) }),
    ...(webSocketUrl !== null && { webSocket: { url: webSocketUrl } }),
  };
}

/** Returns the requested device id; null leaves the choice to the base station. */
function deviceIdOf(join: JoinString, given: string | undefined): string | null {
  if (given === undefined) return join.deviceId ?? null;
  if (join.deviceId !== undefined && join.deviceId !== given)
    throw new LocalError('INVALID_ARGUMENT', `the join string is for the device id ${join.deviceId}, not ${given}`);
  checkIds(join.productId, given);
  return given;
}

async function request(session: Session, { productId, token }: JoinString, deviceId: string | null, signal?: AbortSignal): Promise<string> {
  const response = await session.request({
    method: 'POST',
    path: DevicePath.JOIN,
    contentFormat: CONTENT_FORMAT_CBOR,
    payload: encodeJoinRequest({ productId, deviceId, token }),
    timeout: ANSWER_TIMEOUT,
    ...(signal !== undefined && { signal }),
  });
  if (response.status < 300) return decodeJoinAnswer(response.payload);
  throw stationError(response);
}

/** An id generated by the base station must be valid as well. */
function checkAnswer(productId: string, deviceId: string): void {
  if (!isId(deviceId) || !areIds(productId, deviceId))
    throw new RemoteError('BAD_RESPONSE', 'the base station answered with an invalid device id');
}
