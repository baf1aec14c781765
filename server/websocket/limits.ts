import type { Limits } from '../../protocol/limits.ts';
import { MAX_MESSAGE } from '../../runtime/websocket/index.ts';
import { CONTROL_BURST, CONTROL_RATE, MAX_BUFFERED } from './pipe.ts';
import { MAX_CHUNKS, MAX_FRAGMENTS } from './upgrades.ts';

export const station: Limits = {
  'Pings and pongs of a WebSocket': {
    value: [CONTROL_RATE, CONTROL_BURST, MAX_BUFFERED, MAX_FRAGMENTS, MAX_CHUNKS, MAX_MESSAGE],
    unit: '# a second, # at once, no pong behind #B that wait; for a message, # fragments, # pieces as TCP delivers it, and # bytes',
    filledBy: 'that peer',
    next: 'That WebSocket alone is closed, with 1008 or 1009',
    freedWhen: 'At once',
    test: 'test/server/websocket/station.test.ts',
  },
};
