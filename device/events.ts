/** Device events, as the specification names them (reference §3). */

/**
 * - ATTACHED, DETACHED: the base station has us, or lost us after it had us
 * - CLOSED: the device was closed; always the last one
 * - UNKNOWN_FINGERPRINT, WRONG_PRODUCT_ID, WRONG_DEVICE_ID: the base station refuses us for what we are; we try again, slowly
 * - CERTIFICATE_VALIDATION_FAILED: the base station did not prove to be the one we were told to trust: by its TLS certificate, or by its key
 * - WATCHDOG_FAILURE: not attached, and nothing changed about that for 10 minutes
 * - PLATFORM_FAILURE: the data plane failed and ten attempts to start it again did too; restart the process
 */
export type DeviceEvent =
  | 'ATTACHED'
  | 'DETACHED'
  | 'CLOSED'
  | 'UNKNOWN_FINGERPRINT'
  | 'WRONG_PRODUCT_ID'
  | 'WRONG_DEVICE_ID'
  | 'CERTIFICATE_VALIDATION_FAILED'
  | 'WATCHDOG_FAILURE'
  | 'PLATFORM_FAILURE';

const BY_ERROR: Readonly<Record<string, DeviceEvent>> = {
  UNKNOWN_FINGERPRINT: 'UNKNOWN_FINGERPRINT',
  WRONG_PRODUCT_ID: 'WRONG_PRODUCT_ID',
  WRONG_DEVICE_ID: 'WRONG_DEVICE_ID',
  CERTIFICATE_VALIDATION_FAILED: 'CERTIFICATE_VALIDATION_FAILED',
  FINGERPRINT_MISMATCH: 'CERTIFICATE_VALIDATION_FAILED',
};

/** The event an attach error is told as, if it is one the application can act upon. */
export function eventOf(errorCode: string): DeviceEvent | undefined {
  return BY_ERROR[errorCode];
}
