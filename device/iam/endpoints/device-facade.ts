/** What the endpoints need of the device they are on. */
import type { DeviceDetails, PushAnswer } from '../../../protocol/records/index.ts';
import type { Clock } from '../../../transport/environment.ts';
import type { DeviceConnection } from '../../connections.ts';
import type { Caller } from '../caller.ts';
import type { Attributes } from '../policy.ts';

/** What a device tells of itself to whoever may ask how to pair; the rest of the record is the model's. */
export type DeviceFacts = Omit<DeviceDetails, 'modes' | 'friendlyName'>;

export interface DeviceFacade {
  details(): DeviceFacts;
  readonly clock: Pick<Clock, 'now'>;
  /** The base station has no room for this server connect token. */
  isSctOmitted(token: string): boolean;
  /** Who is at the other end, as it stands now: a connection can become local, or password authenticated. */
  caller(connection: DeviceConnection): Caller;
  /**
   * Sends a notification through the base station and waits for the provider's answer, whatever it says.
   * @param body the provider's `messages:send` document
   * @throws LocalError NOT_ATTACHED, STOPPED; RemoteError
   */
  sendPush(projectId: string, body: string): Promise<PushAnswer>;
  /** Told of each request that is refused with 4.03, for an audit log. Must not throw. */
  denied?(caller: Caller, action: string, attributes: Attributes): void;
}
