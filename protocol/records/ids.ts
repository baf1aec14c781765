/**
 * Product and device ids. By convention they begin with `pr-` and `de-`. The only requirement is that
 * `<productId>-<deviceId>` is one DNS label (mDNS) and that `<productId>.<deviceId>` names a device unambiguously
 * (handshake, JWT claim).
 */
import { LocalError } from '../errors/index.ts';

/** Maximum bytes of `<productId>-<deviceId>`: a DNS label (RFC 1035 §2.3.4). */
export const MAX_DEVICE_NAME = 63;

/** Returns true for 1 to 61 letters, digits, `-` and `_`. */
export function isId(text: string): boolean {
  return typeof text === 'string' && /^[A-Za-z0-9_-]{1,61}$/.test(text);
}

/** Returns true when both are ids and short enough together. */
export function areIds(productId: string, deviceId: string): boolean {
  return isId(productId) && isId(deviceId) && productId.length + 1 + deviceId.length <= MAX_DEVICE_NAME;
}

/** @throws LocalError INVALID_ARGUMENT that says what is wrong */
export function checkIds(productId: string, deviceId: string): void {
  for (const [name, id] of [
    ['product', productId],
    ['device', deviceId],
  ] as const) {
    if (!isId(id)) throw new LocalError('INVALID_ARGUMENT', `the ${name} id must be 1 to 61 letters, digits, "-" or "_"`);
  }
  if (!areIds(productId, deviceId)) {
    throw new LocalError('INVALID_ARGUMENT', `product id and device id together may have ${MAX_DEVICE_NAME - 1} characters`);
  }
}
