import type { Limits } from '../../protocol/limits.ts';
import { MAX_STATION_DOCUMENT } from '../../protocol/records/index.ts';
import { TIMEOUT } from './proof.ts';

export const device: Limits = {
  'Document of a base station': {
    value: [MAX_STATION_DOCUMENT, TIMEOUT, TIMEOUT],
    unit: '#B, #s, one at a time for each station',
    filledBy: 'a server at its host name with a valid certificate',
    next: 'The device is not attached, and tries again with its back-off. Clients on its network reach it.',
    freedWhen: 'It is whole, or #s',
    test: ['test/runtime/station/proof.test.ts', 'test/platform/node/https.test.ts'],
  },
};

export const client: Limits = {
  'Document of a base station': {
    value: [MAX_STATION_DOCUMENT, TIMEOUT, TIMEOUT],
    unit: '#B, #s, one at a time for each station',
    filledBy: 'a server at its host name with a valid certificate',
    next: 'BAD_RESPONSE or TIMEOUT on the way through that station. Other connects wait for the same answer; those with a pin need none.',
    freedWhen: 'It is whole, or #s',
    test: ['test/runtime/station/proof.test.ts', 'test/platform/node/https.test.ts'],
  },
};
