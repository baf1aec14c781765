import type { Limits } from '../../protocol/limits.ts';
import { MAX_CANDIDATES } from './find-device.ts';

export const client: Limits = {
  'Addresses that one search for a device reports': {
    value: MAX_CANDIDATES,
    filledBy: 'anyone on the link',
    next: 'None from this search: the connect continues over its other channels',
    freedWhen: 'The search ends, 2 s later (`MdnsTimeout`)',
    test: 'test/runtime/discovery/find-device.test.ts',
  },
};
