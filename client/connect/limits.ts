import type { Limits } from '../../protocol/limits.ts';
import { MAX_CANDIDATES } from '../../runtime/discovery/find-device.ts';
import { HANDSHAKE_TIMEOUT } from './local.ts';

export const client: Limits = {
  'Handshakes of one connect on the local network': {
    value: [MAX_CANDIDATES, HANDSHAKE_TIMEOUT, HANDSHAKE_TIMEOUT],
    unit: '#, with four Initiates in #s each, wherever the addresses lead',
    filledBy: 'anyone on the link',
    next: 'The connect continues over its other channels, as fast as without them',
    freedWhen: '#s; the connect ends',
    test: 'test/client/connect/local.test.ts',
  },
};
