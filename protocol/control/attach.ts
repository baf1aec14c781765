/**
 * `POST /device/attach`: a device presents itself to its base station, and is then attached or redirected to another
 * one.
 *
 * - Request: `{SvcVersion, AppName?, AppVersion?, ProductId, DeviceId, Redirected?, Tokens?}`.
 * - Answer 2.01: `{Status: 1, Host, Port, Fingerprint}`, or `{Status: 0}` with `KeepAlive?`
 *   (`{Interval, RetryInterval, MaxRetries}`), `Address?` (`{Ip, Port}`), `WallTime?`, `MaxTokens?`, `TokensKnown?` and
 *   `Stun?` (`[{Ip?, Port}]`).
 *
 * Then, unless the base station knows the list, `PUT /device/sct` with an array of the tokens. The channel proves the
 * device's key.
 */

import { hex } from '@scure/base';
import type { KeepAlive } from '../../bindings/options.ts';
import {
  array,
  type CborMap,
  decode,
  encode,
  map,
  optionalBool,
  optionalBytes,
  optionalMapField,
  optionalText,
  optionalUint,
  text,
  texts,
  uint,
} from '../cbor/index.ts';
import type { CryptoProvider } from '../crypto-provider.ts';
import { RemoteError } from '../errors/index.ts';
import { addressMap, readAddress, type SocketAddress } from './address.ts';
import { MAX_APP_TEXT, MAX_ID, MAX_INTERVAL, MAX_SCT, MAX_SCTS, MAX_VERSION, MIN_INTERVAL } from './field-bounds.ts';
import { REDIRECT, type Redirect, readRedirect, redirectFields } from './redirect.ts';
import { readStun, type StunServer, stunField } from './stun.ts';

/** The device's own description. */
export interface AttachRequest {
  /** Version of this software on the device. */
  readonly svcVersion: string;
  readonly appName: string | null;
  readonly appVersion: string | null;
  readonly productId: string;
  readonly deviceId: string;
  /** Another base station sent the device here: serve it, do not redirect it again. */
  readonly redirected: boolean;
  /**
   * Digest of the list of tokens that the device would upload (`digestOfTokens`), 32 bytes; null from a device that
   * does not send one.
   */
  readonly tokens: Uint8Array | null;
}

/** The device is attached. */
export interface AttachGrant {
  readonly kind: 'attached';
  /** Null: the device keeps its own values. */
  readonly keepAlive: KeepAlive | null;
  /** The device's address as the base station sees it. */
  readonly observedAddress: SocketAddress | null;
  /** Unix milliseconds. */
  readonly wallTime: number | null;
  /** Tokens that the base station accepts from one device; null: it does not report a limit, and accepts 100. */
  readonly maxTokens: number | null;
  /** The base station has the list whose digest the request gave: it need not be uploaded. */
  readonly tokensKnown: boolean;
  /** The addresses at which the base station answers STUN; absent: none. */
  readonly stun?: readonly StunServer[];
}

/** The device is attached, or redirected to another base station. */
export type AttachAnswer = AttachGrant | Redirect;

/** Status of an answer that is not a redirect. */
const ATTACHED = 0;

/** Length of a digest of tokens, bytes. */
const DIGEST = 32;

/** Body of `POST /device/attach`. */
export function encodeAttachRequest(request: AttachRequest): Uint8Array {
  return encode({
    SvcVersion: request.svcVersion,
    AppName: request.appName ?? undefined,
    AppVersion: request.appVersion ?? undefined,
    ProductId: request.productId,
    DeviceId: request.deviceId,
    Redirected: request.redirected ? true : undefined,
    Tokens: request.tokens ?? undefined,
  });
}

/** @throws RemoteError PARSE */
export function decodeAttachRequest(payload: Uint8Array): AttachRequest {
  const body = map(decode(payload));
  return {
    svcVersion: text(body, 'SvcVersion', { max: MAX_VERSION }),
    appName: optionalText(body, 'AppName', { max: MAX_APP_TEXT }) ?? null,
    appVersion: optionalText(body, 'AppVersion', { max: MAX_APP_TEXT }) ?? null,
    productId: text(body, 'ProductId', { min: 1, max: MAX_ID }),
    deviceId: text(body, 'DeviceId', { min: 1, max: MAX_ID }),
    redirected: optionalBool(body, 'Redirected') ?? false,
    tokens: optionalBytes(body, 'Tokens', { min: DIGEST, max: DIGEST }) ?? null,
  };
}

/**
 * Body of the 2.01 response.
 * @throws LocalError INVALID_ARGUMENT for a redirect or address that cannot be written
 */
export function encodeAttachAnswer(answer: AttachAnswer): Uint8Array {
  if (answer.kind === 'redirect') return encode({ Status: REDIRECT, ...redirectFields(answer) });
  const { keepAlive, observedAddress, wallTime, maxTokens, tokensKnown, stun } = answer;
  return encode({
    Status: ATTACHED,
    KeepAlive:
      keepAlive === null
        ? undefined
        : { Interval: keepAlive.interval, RetryInterval: keepAlive.retryInterval, MaxRetries: keepAlive.maxRetries },
    Address: observedAddress === null ? undefined : addressMap(observedAddress),
    WallTime: wallTime ?? undefined,
    MaxTokens: maxTokens ?? undefined,
    TokensKnown: tokensKnown ? true : undefined,
    Stun: stunField(stun),
  });
}

/** @throws RemoteError PARSE */
export function decodeAttachAnswer(payload: Uint8Array): AttachAnswer {
  const body = map(decode(payload));
  const status = uint(body, 'Status');
  if (status === REDIRECT) return readRedirect(body);
  if (status !== ATTACHED) throw new RemoteError('PARSE', `Status ${status} of an attach answer is not known`);
  const keepAlive = optionalMapField(body, 'KeepAlive');
  const observed = optionalMapField(body, 'Address');
  const stun = readStun(body);
  return {
    kind: 'attached',
    keepAlive: keepAlive === undefined ? null : readKeepAlive(keepAlive),
    observedAddress: observed === undefined ? null : readAddress(observed),
    wallTime: optionalUint(body, 'WallTime') ?? null,
    maxTokens: optionalUint(body, 'MaxTokens') ?? null,
    tokensKnown: optionalBool(body, 'TokensKnown') ?? false,
    ...(stun !== undefined && { stun }),
  };
}

/** Body of `PUT /device/sct`: the server connect tokens of the device, which replace the previous ones. */
export function encodeTokens(tokens: readonly string[]): Uint8Array {
  return encode(tokens);
}

/** @throws RemoteError PARSE */
export function decodeTokens(payload: Uint8Array): string[] {
  return texts(array(decode(payload), 'tokens', MAX_SCTS), 'tokens', { min: 1, max: MAX_SCT });
}

function readKeepAlive(from: CborMap): KeepAlive {
  return {
    interval: uint(from, 'Interval', { min: MIN_INTERVAL, max: MAX_INTERVAL }),
    retryInterval: uint(from, 'RetryInterval', { min: MIN_INTERVAL, max: MAX_INTERVAL }),
    maxRetries: uint(from, 'MaxRetries', { min: 1, max: 1000 }),
  };
}

type Sha256 = Pick<CryptoProvider, 'sha256'>;

/**
 * Returns the digest by which a device and its base station detect that both have the same list of server connect
 * tokens (PROTOCOL.md §7), 32 bytes: SHA-256 over the SHA-256 hashes of the tokens, each once, in ascending order. A
 * base station computes it from the hashes, which are all that it keeps.
 */
export function digestOfTokens(tokens: readonly string[], crypto: Sha256): Uint8Array {
  const text = new TextEncoder();
  return digestOfTokenHashes(
    tokens.map((token) => hex.encode(crypto.sha256(text.encode(token)))),
    crypto,
  );
}

/** As {@link digestOfTokens}, from the tokens' SHA-256 hashes. @param hashes 64 lower-case hex digits each */
export function digestOfTokenHashes(hashes: readonly string[], crypto: Sha256): Uint8Array {
  // Lower-case hex sorts in the order of the bytes.
  const sorted = [...new Set(hashes)].sort();
  return crypto.sha256(hex.decode(sorted.join('')));
}
