import type { Limits } from '../../protocol/limits.ts';
import { BEGIN_RATE, DAILY, DEVICE_BURST, DEVICE_RATE, FREE, LONGEST_WAIT, SECOND, SLOTS } from './throttle.ts';

export const device: Limits = {
  'Wrong passwords for one name': {
    value: [FREE, SECOND, LONGEST_WAIT, DAILY, SLOTS, LONGEST_WAIT, LONGEST_WAIT],
    unit: '#, then waits from #s to #s; # a day over the Internet',
    filledBy: 'guessers, in # slots for each class: paired key, local, remote',
    next: 'In that class: 4.29 until the wait is over. The other classes try at once.',
    freedWhen:
      'One failure is forgiven every #s; the day is over. Of the time between two runs at most #s count, none if the clock was set back',
    test: ['test/device/password/throttle.test.ts', 'test/device/password/throttle-keeper.test.ts'],
  },
  'Wrong passwords for all names': {
    value: [DEVICE_BURST, DEVICE_RATE, BEGIN_RATE],
    unit: '# at once, # a second for each class; # runs begin in a second',
    filledBy: 'guessers of that class',
    next: 'In that class: 4.29 until the next second. The other classes try at once.',
    freedWhen: 'The rate allows the next',
    test: ['test/device/password/throttle.test.ts', 'test/device/password/authentication.test.ts'],
  },
};
