import type { Limits } from '../../protocol/limits.ts';
import { REFUSALS, REFUSALS_AT_ONCE } from './station-events.ts';

export const station: Limits = {
  'Refusals that `svc basestation --json` prints': {
    value: [REFUSALS_AT_ONCE, 1000 / REFUSALS],
    unit: '# at once, then one every #s',
    filledBy: 'anyone',
    next: 'Its refusal is counted, and the number printed every minute. Attached, detached and joined devices are printed.',
    freedWhen: 'The rate allows the next',
    test: 'test/cli/station-events.test.ts',
  },
};
