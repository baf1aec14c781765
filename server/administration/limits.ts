import { MAX_SERVICE_MESSAGE } from '../../protocol/control/index.ts';
import type { Limits } from '../../protocol/limits.ts';
import { OPEN_PER_PRODUCT } from './invitations.ts';
import { ServiceTimeout } from './rules.ts';

export const station: Limits = {
  'Open invitations of one product': {
    value: OPEN_PER_PRODUCT,
    filledBy: 'administrators of the base station',
    next: 'Others keep nothing; `svc admin device invite` is refused and names the list',
    freedWhen: 'One is used, revoked, or expires',
    test: 'test/server/administration/invitations.test.ts',
  },
  'Answer of a service': {
    value: [MAX_SERVICE_MESSAGE, ServiceTimeout.DEFAULT, ServiceTimeout.MAX],
    unit: '#B, in #s, at most #s',
    setting: 'its registration',
    filledBy: 'that service',
    next: "The device gets an error; the call's slot is free",
    freedWhen: 'The connection to the service is closed',
    test: 'test/server/services/invoker.test.ts',
  },
};
