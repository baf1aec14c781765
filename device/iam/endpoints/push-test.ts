/** Sends test notifications (docs/iam.md) and returns the provider's answer, of any status. */
import { asSvcError, LocalError } from '../../../protocol/errors/index.ts';
import type { PushAnswer, UserPush } from '../../../protocol/records/index.ts';
import type { DeviceFacade } from './device-facade.ts';

const NOTIFICATION = { title: 'Test', body: 'This is a test notification' };

/** Codes for a base station that is not connected, or whose connection was lost meanwhile. */
const UNREACHABLE: ReadonlySet<string> = new Set(['NOT_ATTACHED', 'NOT_CONNECTED', 'CLOSED', 'STOPPED', 'TIMEOUT']);

/**
 * Sends one notification at a time for the whole device: each takes a slot at the base station until the provider
 * answers.
 */
export class PushTests {
  readonly #device: DeviceFacade;
  #running = false;

  constructor(device: DeviceFacade) {
    this.#device = device;
  }

  /**
   * @throws LocalError OPERATION_IN_PROGRESS; NOT_ATTACHED without base station; INVALID_STATE when the base station
   *   refused it
   */
  async send({ token, projectId }: Required<UserPush>): Promise<PushAnswer> {
    if (this.#running) throw new LocalError('OPERATION_IN_PROGRESS', 'Another push test is running');
    this.#running = true;
    try {
      return await this.#device.sendPush(projectId, JSON.stringify({ message: { token, notification: NOTIFICATION } }));
    } catch (error) {
      const { code, message } = asSvcError(error);
      // The base station's refusals must not look like the device's: 4.03 here always comes from policies.
      if (UNREACHABLE.has(code)) throw new LocalError('NOT_ATTACHED', `The base station cannot be reached: ${message}`);
      throw new LocalError('INVALID_STATE', `The base station did not send it: ${message}`);
    } finally {
      this.#running = false;
    }
  }
}
