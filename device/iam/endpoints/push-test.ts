/** A notification to try a user's push settings with (reference §1.4): what the provider says of it goes back, whatever it is. */
import { Status } from '../../../protocol/coap/index.ts';
import { asSvcError, LocalError } from '../../../protocol/errors/index.ts';
import { encodePushAnswer, type PushAnswer, type UserPush } from '../../../protocol/records/index.ts';
import { endpoint, type IamEndpoint } from './endpoint.ts';
import type { IamHost } from './host.ts';
import { aboutUser, usernameOf } from './users.ts';

const NOTIFICATION = { title: 'Test', body: 'This is a test notification' };

/** The base station is not there, or went away meanwhile. */
const UNREACHABLE: ReadonlySet<string> = new Set(['NOT_ATTACHED', 'NOT_CONNECTED', 'CLOSED', 'STOPPED', 'TIMEOUT']);

/** One notification at a time for the whole device: each holds a place at the base station for as long as the provider takes. */
export class PushTests {
  readonly #host: IamHost;
  #running = false;

  constructor(host: IamHost) {
    this.#host = host;
  }

  /** @throws LocalError OPERATION_IN_PROGRESS; NOT_ATTACHED without base station; INVALID_STATE when that has refused it */
  async send({ token, projectId }: Required<UserPush>): Promise<PushAnswer> {
    if (this.#running) throw new LocalError('OPERATION_IN_PROGRESS', 'Another push test is running');
    this.#running = true;
    try {
      return await this.#host.sendPush(projectId, JSON.stringify({ message: { token, notification: NOTIFICATION } }));
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

export const pushTest: IamEndpoint = endpoint({
  method: 'POST',
  path: '/iam/users/{username}/push-test',
  action: 'IAM:SendUserPushTest',
  attributes: aboutUser,
  checks: ['action'],
  answer: async (request) => {
    const user = request.iam.user(usernameOf(request));
    if (user === undefined) throw new LocalError('NOT_FOUND', 'No such user');
    const { token, projectId } = user.push ?? {};
    if (!token || !projectId) throw new LocalError('NOT_FOUND', 'The user has no push settings');
    return { status: Status.CREATED, payload: encodePushAnswer(await request.pushTests.send({ token, projectId })) };
  },
});
