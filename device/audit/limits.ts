import type { Limits } from '../../protocol/limits.ts';
import { DEFAULT_SEGMENT, DEFAULT_SEGMENTS } from './journal.ts';
import { PER_DAY, PER_MINUTE } from './limiter.ts';

export const device: Limits = {
  'Refusals in the audit log': {
    value: [PER_MINUTE, PER_DAY],
    unit: '# a minute, # a day for each event and class',
    filledBy: 'strangers',
    next: 'Counted, and the count is written every hour. Other classes are written.',
    freedWhen: 'The rate allows the next',
    test: 'test/device/audit/log.test.ts',
  },
  'Audit log': {
    value: [DEFAULT_SEGMENTS, DEFAULT_SEGMENT],
    unit: '# segments of #B',
    setting: '`maxBytes`, `segmentBytes`',
    filledBy: 'users whose changes are written',
    next: 'An entry is written: the oldest segment is removed whole',
    freedWhen: 'A new segment begins',
    test: 'test/device/audit/log.test.ts',
  },
};
