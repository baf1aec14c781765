/** Events of a device, named as in the specification. */

/**
 * - ATTACHED, DETACHED: the base station accepted the device, or lost it afterwards
 * - CLOSED: the device was closed; always the last event
 * - UNKNOWN_FINGERPRINT, WRONG_PRODUCT_ID, WRONG_DEVICE_ID: the base station refuses the device's identity; retried
 *   slowly
 * - CERTIFICATE_VALIDATION_FAILED: the base station could not be authenticated by its TLS certificate or its pinned key
 * - WATCHDOG_FAILURE: not attached, with no change for 10 minutes
 * - PLATFORM_FAILURE: the data plane failed, and so did ten restarts of it; restart the process
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

/** Returns the event for an attach error, if the application can act on it. */
export function eventOf(errorCode: string): DeviceEvent | undefined {
  return BY_ERROR[errorCode];
}
