import type { Limits } from '../../protocol/limits.ts';
import { LIMIT } from './shared-queue.ts';
import { DRAIN_TIME, MAX_BOUND, MIN_BOUND } from './socket.ts';

export const station: Limits = {
  'Packets for one WebSocket': {
    value: [MIN_BOUND, DRAIN_TIME, MAX_BOUND],
    unit: '#B (or #s of drain, #B at most) in the pipe, as much behind it',
    filledBy: 'a peer that reads nothing',
    next: 'The oldest Route packet of that WebSocket is dropped; others send',
    freedWhen: 'The peer reads, or the WebSocket ends',
    test: ['test/runtime/websocket/socket.test.ts', 'test/e2e/station-websocket.test.ts'],
  },
  'Packets for all WebSockets': {
    value: LIMIT,
    unit: '#B',
    filledBy: '500 peers that read nothing',
    next: 'Each has room for two packets in the pipe and two behind it',
    freedWhen: 'They read, or end',
    test: 'test/runtime/websocket/socket.test.ts',
  },
};
