/**
 * `POST /device/join`: a device that the base station does not know yet redeems an invitation, which registers its key.
 *
 * Request `{ProductId, DeviceId?, Token}`, answer 2.01 `{DeviceId}`: the device id of the key from then on. The key is
 * the one that the channel's handshake proved. The same key may repeat the request until the invitation expires, and
 * gets the same answer.
 */
import { bytes, decode, encode, map, optionalText, text } from '../cbor/index.ts';
import { JOIN_TOKEN, MAX_ID } from './field-bounds.ts';

/** The request of a device to be registered. */
export interface JoinRequest {
  readonly productId: string;
  /** Null: the id in the invitation, or one that the base station generates. */
  readonly deviceId: string | null;
  /** The token of the invitation, 16 bytes. */
  readonly token: Uint8Array;
}

/** Body of `POST /device/join`. */
export function encodeJoinRequest({ productId, deviceId, token }: JoinRequest): Uint8Array {
  return encode({ ProductId: productId, DeviceId: deviceId ?? undefined, Token: token });
}

/** @throws RemoteError PARSE */
export function decodeJoinRequest(payload: Uint8Array): JoinRequest {
  const body = map(decode(payload));
  return {
    productId: text(body, 'ProductId', { min: 1, max: MAX_ID }),
    deviceId: optionalText(body, 'DeviceId', { min: 1, max: MAX_ID }) ?? null,
    token: bytes(body, 'Token', { min: JOIN_TOKEN, max: JOIN_TOKEN }),
  };
}

/** Body of the 2.01 response. @param deviceId the id of the device from now on */
export function encodeJoinAnswer(deviceId: string): Uint8Array {
  return encode({ DeviceId: deviceId });
}

/** Returns the device id. @throws RemoteError PARSE */
export function decodeJoinAnswer(payload: Uint8Array): string {
  return text(map(decode(payload)), 'DeviceId', { min: 1, max: MAX_ID });
}
