import type { Limits } from '../limits.ts';
import { DEFAULT_BODY, DEFAULT_TRANSFERS, TRANSFER_TIMEOUT } from './exchanges.ts';
import { MAX_AUTOMATIC } from './outbox.ts';

export const both: Limits = {
  'Automatic answers of one session that wait': {
    value: MAX_AUTOMATIC,
    filledBy: 'a peer that asks and does not read',
    next: 'Further ones are dropped on that session',
    freedWhen: 'They are sent',
    test: 'test/protocol/coap/hostile.test.ts',
  },
  'Bodies in blocks': {
    value: [DEFAULT_BODY, DEFAULT_TRANSFERS, TRANSFER_TIMEOUT],
    unit: '#B each, # per session',
    filledBy: 'the peer of that session',
    next: '4.13 with Size1 or 5.03 on that session',
    freedWhen: 'The last block; #s after the last block that came',
    test: 'test/protocol/coap/bodies.test.ts',
  },
};

export const client: Limits = {
  'Body of an answer': {
    value: DEFAULT_BODY,
    unit: '#B',
    filledBy: 'the device',
    next: 'The request fails with BAD_RESPONSE. Others continue.',
    freedWhen: 'At once',
    test: 'test/protocol/coap/bodies.test.ts',
  },
};
