/** Users, and the caller's own (reference §1.3). */
import { Status } from '../../../protocol/coap/index.ts';
import { LocalError } from '../../../protocol/errors/index.ts';
import { encodeUser } from '../../../protocol/records/index.ts';
import { endpoint } from './endpoint.ts';

/** No action: whoever is nobody learns that, and nothing else. */
export const me = endpoint({
  method: 'GET',
  path: '/iam/me',
  checks: [],
  answer: ({ iam, caller }) => {
    const user = iam.resolveCaller(caller);
    if (user === undefined) throw new LocalError('NOT_FOUND', 'This client is not paired');
    return { status: Status.CONTENT, payload: encodeUser(user) };
  },
});
