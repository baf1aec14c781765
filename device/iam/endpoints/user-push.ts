/** Tests a user's push settings with a notification (docs/iam.md). */
import { Status } from '../../../protocol/coap/index.ts';
import { LocalError } from '../../../protocol/errors/index.ts';
import { encodePushAnswer } from '../../../protocol/records/index.ts';
import { endpoint, type IamEndpoint } from './endpoint.ts';
import { aboutUser, usernameOf } from './users.ts';

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
