import type { Limits } from '../protocol/limits.ts';
import { DEFAULT_CONNECTIONS, MAX_CONNECTIONS } from './svc-client.ts';

export const client: Limits = {
  'Connections of a client': {
    value: [DEFAULT_CONNECTIONS, MAX_CONNECTIONS],
    unit: '#, at most #',
    setting: '`maxConnections`',
    filledBy: 'its own application',
    next: 'OUT_OF_MEMORY; it may be tried again',
    freedWhen: 'A connection closes, or a connect fails',
    test: 'test/client/limits.test.ts',
  },
};
