/**
 * Where a device is attached: what a connect asks before it reaches the device.
 *
 * One implementation, `Presence`, knows the sessions of this base station and lives in its process. Callers treat
 * every answer as possibly stale: a device may have left, or attached, since it was asked for (`lookups.ts`).
 */
import type { Session } from '../../transport/session/index.ts';

/** Product id and device id. */
export interface DeviceIds {
  readonly productId: string;
  readonly deviceId: string;
}

/** Where a device is attached; `at` tells the kinds apart. here: over a session of this base station. */
export type Location = { readonly at: 'here'; readonly session: Session };

/** Answers where devices are attached. */
export interface Directory {
  /**
   * Rejects when it cannot tell.
   * @param options `signal` fires when the answer is no longer needed: what runs for it ends, and the promise settles.
   * It is created when it is first read
   * @returns null: attached nowhere
   */
  locate(device: DeviceIds, options: { readonly signal: AbortSignal }): Promise<Location | null>;
}
