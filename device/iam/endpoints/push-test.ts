/** Sends test notifications (reference §1.4) and returns the provider's answer, whatever it is. */
import { asSvcError, LocalError } from '../../../protocol/errors/index.ts';
import type { PushAnswer, UserPush } from '../../../protocol/records/index.ts';
import type { DeviceFacade } from './device-facade.ts';

const NOTIFICATION = { title: 'Test', body: 'This is a test notification' };

/** The base station is not there, or went away meanwhile. */
const UNREACHABLE: ReadonlySet<string> = new Set(['NOT_ATTACHED', 'NOT_CONNECTED', 'CLOSED', 'STOPPED', 'TIMEOUT']);

/** One notification at a time for the whole device: each holds a place at the base station for as long as the provider takes. */
export class PushTests {
  readonly #device: DeviceFacade;
  #running = false;

  constructor(device: DeviceFacade) {
    this.#device = device;
  }

  /** @throws LocalError OPERATION_IN_PROGRESS; NOT_ATTACHED without base station; INVALID_STATE when that has refused it */
  async send({ token, projectId }: Required<UserPush>): Promise<PushAnswer> {
    if (this.#running) throw new LocalError('OPERATION_IN_PROGRESS', 'Another push test is running');
    this.#running = true;
    try {
      return await this.#device.sendPush(projectId, JSON.stringify({ message: { token, notification: NOTIFICATION } }));
    } catch (error) {
      const { code, message } = asSvcError(error);
      // The base station's refusals must not look like the device's: 4.03 here is always a matter of policies.
      if (UNREACHABLE.has(code)) throw new LocalError('NOT_ATTACHED', `The base station cannot be reached: ${message}`);
      throw new LocalError('INVALID_STATE', `The base station did not send it: ${message}`);
    } finally {
      this.#running = false;
    }
  }
}
