import type { Limits } from '../../protocol/limits.ts';
import { MAX_REQUESTS, REQUEST_TIMEOUT } from './gateway.ts';
import { MAX_OBSERVATIONS } from './observations.ts';

export const client: Limits = {
  'Requests of a gateway under way': {
    value: [MAX_REQUESTS, REQUEST_TIMEOUT],
    filledBy: 'local programs, while the device is slow',
    next: '5.03 with Max-Age 1; others keep nothing',
    freedWhen: 'The device answers; #s (`requestTimeout`)',
    test: 'test/client/gateway-limits.test.ts',
  },
  'Observations of a gateway': {
    value: MAX_OBSERVATIONS,
    filledBy: 'local programs',
    next: 'A single answer without Observe',
    freedWhen: 'It is cancelled or reset, not acknowledged, or ended by the device',
    test: 'test/client/gateway.test.ts',
  },
};
