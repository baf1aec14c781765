import type { Limits } from '../../protocol/limits.ts';
import { CAPACITY } from './token-cache.ts';

export const station: Limits = {
  'Access tokens of push credentials': {
    value: CAPACITY,
    filledBy: 'organizations with push credentials',
    next: 'One more token is fetched: the oldest is forgotten',
    freedWhen: 'It expires, is refused, or makes way',
    test: 'test/server/push/token-cache.test.ts',
  },
};
