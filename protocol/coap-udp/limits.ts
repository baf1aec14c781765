import type { Limits } from '../limits.ts';
import { MAX_BODY, MAX_TRANSFERS, ROOM, TRANSFER_TIMEOUT } from './block-transfers.ts';
import { EXCHANGE_LIFETIME, MAX_OUTGOING, MAX_REMEMBERED, MAX_RETRANSMIT } from './message-layer.ts';

export const client: Limits = {
  'Bodies in blocks at a gateway': {
    value: [MAX_TRANSFERS, MAX_BODY, ROOM, TRANSFER_TIMEOUT],
    unit: '#, of #B each and #B together',
    filledBy: 'local programs',
    next: 'A kept answer makes way, the oldest first. When all are uploads: 5.03.',
    freedWhen: 'The body is whole; #s after its last block',
    test: ['test/client/gateway.test.ts', 'test/protocol/coap-udp/block-transfers.test.ts'],
  },
  'Requests that a gateway remembers': {
    value: [MAX_REMEMBERED, EXCHANGE_LIFETIME],
    filledBy: 'local programs',
    next: 'An answer: the oldest is forgotten, and its repeat counts as new',
    freedWhen: '#s',
    test: 'test/protocol/coap-udp/message-layer.test.ts',
  },
  'Messages of a gateway that wait for an acknowledgement': {
    value: [MAX_OUTGOING, MAX_RETRANSMIT + 1],
    filledBy: 'observers that do not acknowledge',
    next: 'It is sent: the oldest is given up, and its observation ends',
    freedWhen: 'It is acknowledged or reset, or was sent # times',
    test: 'test/protocol/coap-udp/message-layer.test.ts',
  },
};
