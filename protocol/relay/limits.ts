import type { Limits } from '../limits.ts';
import { defaultRouteLimits, RELEASE_DELAY } from './route-table.ts';

export const station: Limits = {
  Routes: {
    value: [
      defaultRouteLimits.routes,
      defaultRouteLimits.routesPerChannel,
      RELEASE_DELAY,
      defaultRouteLimits.idleTimeout,
      1.5 * defaultRouteLimits.idleTimeout,
    ],
    unit: '# in all, # of one session',
    setting: '`routes.routes`, `--routes`; `routes.routesPerChannel`',
    filledBy: 'clients with a valid credential, together with a device',
    next: '5.03; others keep nothing',
    freedWhen: 'Both ends give it back, or #s after one does; a session ends; #s to #s without a packet (`routeIdleTimeout`)',
    test: ['test/server/station/limits.test.ts', 'test/protocol/relay/route-table.test.ts'],
  },
  'Traffic of one direction of a route': {
    value: [defaultRouteLimits.bytesPerSecond / 1e6, defaultRouteLimits.packetsPerSecond],
    unit: '# MB and # packets a second',
    setting: '`routes.bytesPerSecond`, `routes.packetsPerSecond`',
    filledBy: 'the sender on that route',
    next: 'Packets of that direction are dropped. The other direction and other routes forward.',
    freedWhen: 'The rate allows the next',
    test: 'test/protocol/relay/route-table.test.ts',
  },
  'Packets with unknown route ids': {
    value: [defaultRouteLimits.checksPerSecond, defaultRouteLimits.resetsPerSecond],
    unit: '# processed, # Resets a second',
    setting: '`routes.checksPerSecond`, `routes.resetsPerSecond`',
    filledBy: 'anyone',
    next: 'No Reset in that second. Live routes forward.',
    freedWhen: 'The rate allows the next',
    test: 'test/protocol/relay/route-table.test.ts',
  },
};
