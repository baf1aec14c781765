/**
 * Finds where a device is attached: a connect queries it before it reaches the device.
 *
 * One implementation, `Presence`, knows the sessions of this base station and lives in its process. Callers treat every
 * answer as possibly stale: a device may have left or attached in the meantime (`lookups.ts`).
 */
import type { Session } from '../../runtime/session/index.ts';

/** Product id and device id. */
export interface DeviceIds {
  readonly productId: string;
  readonly deviceId: string;
}

/** Where a device is attached; `at` distinguishes the kinds. here: over a session of this base station. */
export type Location = { readonly at: 'here'; readonly session: Session };

/** Finds where devices are attached. */
export interface Directory {
  /**
   * Locates a device. Rejects when it cannot find out.
   * @param options `signal` fires when the answer is no longer needed: the work for it ends, and the promise settles.
   *   It is created when first read
   * @returns null: attached nowhere
   */
  locate(device: DeviceIds, options: { readonly signal: AbortSignal }): Promise<Location | null>;
}
