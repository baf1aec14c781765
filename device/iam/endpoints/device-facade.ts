/** The part of a device that the endpoints use. */

import type { Clock } from '../../../platform/environment.ts';
import type { DeviceDetails, PushAnswer } from '../../../protocol/records/index.ts';
import type { DeviceConnection } from '../../connections.ts';
import type { Caller } from '../caller.ts';
import type { Attributes } from '../policy.ts';

/** Facts that a device reveals to a client that may ask how to pair; the model adds the rest of the record. */
export type DeviceFacts = Omit<DeviceDetails, 'modes' | 'friendlyName'>;

export interface DeviceFacade {
  details(): DeviceFacts;
  readonly clock: Pick<Clock, 'now'>;
  /** Whether the base station has no capacity for this server connect token. */
  isSctOmitted(token: string): boolean;
  /** Day of the latest connection with this key since the device was started; undefined without one. */
  lastUsed(fingerprint: string): string | undefined;
  /** The current caller on the connection, which can become local or password authenticated. */
  caller(connection: DeviceConnection): Caller;
  /**
   * Sends a notification through the base station and returns the provider's answer, of any status.
   * @param body the provider's `messages:send` document
   * @throws LocalError NOT_ATTACHED, STOPPED; RemoteError
   */
  sendPush(projectId: string, body: string): Promise<PushAnswer>;
  /** Called for each request refused with 4.03, for an audit log. Must not throw. */
  denied?(caller: Caller, action: string, attributes: Attributes): void;
}
