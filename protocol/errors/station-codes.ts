/**
 * The numbers in a base station's error body `{Error: {Code, Message}}` (PROTOCOL.md §10), each with its error of the
 * catalogue and the CoAP status of the response. 11 (the same identity attached again) and 12 (the device id of a join
 * is taken) are our own.
 */
import type { ErrorCode } from './catalogue.ts';

/** Numbers of a base station's error body. */
export const StationCode = {
  INVALID_JWT: 1,
  NOT_ATTACHED: 2,
  UNKNOWN_PRODUCT_ID: 3,
  UNKNOWN_DEVICE_ID: 4,
  UNKNOWN_FINGERPRINT: 5,
  TOKEN_REJECTED: 6,
  WRONG_PRODUCT_ID: 7,
  WRONG_DEVICE_ID: 8,
  SERVER_KEY_MISMATCH: 9,
  UNKNOWN_SERVER_KEY: 10,
  REPLACED: 11,
  DEVICE_ID_IN_USE: 12,
} as const;

export type StationCode = (typeof StationCode)[keyof typeof StationCode];

/** The meaning of one station code. */
export interface StationCodeMeaning {
  readonly error: ErrorCode;
  /** CoAP status of the response, class × 100 + detail. */
  readonly status: number;
  /** Text that a base station sends with the code. */
  readonly message: string;
}

const meanings: Readonly<Record<StationCode, StationCodeMeaning>> = {
  1: { error: 'TOKEN_REJECTED', status: 401, message: 'invalid JWT' },
  2: { error: 'NOT_ATTACHED', status: 404, message: 'the device is not attached' },
  3: { error: 'UNKNOWN_PRODUCT_ID', status: 404, message: 'unknown product id' },
  4: { error: 'UNKNOWN_DEVICE_ID', status: 404, message: 'unknown device id' },
  5: { error: 'UNKNOWN_FINGERPRINT', status: 404, message: 'unknown device fingerprint' },
  6: { error: 'TOKEN_REJECTED', status: 401, message: 'server connect token rejected' },
  7: { error: 'WRONG_PRODUCT_ID', status: 400, message: 'wrong product id for this fingerprint' },
  8: { error: 'WRONG_DEVICE_ID', status: 400, message: 'wrong device id for this fingerprint' },
  9: { error: 'FORBIDDEN', status: 403, message: 'the server key does not allow this kind of authorization' },
  10: { error: 'UNKNOWN_SERVER_KEY', status: 404, message: 'unknown server key' },
  11: { error: 'REPLACED', status: 409, message: 'the same identity attached again' },
  12: { error: 'DEVICE_ID_IN_USE', status: 409, message: 'the device id belongs to a device with another key' },
};

/** Returns the meaning of a code from the wire, undefined for a number that is not in the table. */
export function stationCodeMeaning(code: number): StationCodeMeaning | undefined {
  return Object.hasOwn(meanings, code) ? meanings[code as StationCode] : undefined;
}
