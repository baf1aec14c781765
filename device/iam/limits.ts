import type { Limits } from '../../protocol/limits.ts';
import { CHANGE_BURST, CHANGE_SECONDS } from './endpoints/index.ts';
import { PER_ADDRESS, TOTAL } from './endpoints/pairing-rates.ts';
import { MAX_KEYS } from './key-use.ts';
import { defaultIamLimits } from './rules.ts';

export const device: Limits = {
  'Local open pairing': {
    value: [PER_ADDRESS, TOTAL, TOTAL / PER_ADDRESS, TOTAL],
    unit: '# a minute from one full address (for IPv6, too, since a local network is one /64), # in all',
    filledBy: 'anyone on the local network, while that pairing is on; one host with # addresses takes all',
    next: 'At that address: 4.29 with Max-Age. Elsewhere: an attempt; when # are used up 4.29 with 2 s.',
    freedWhen: 'The rate allows the next',
    test: 'test/device/iam/endpoints/pairing-rates.test.ts',
  },
  Users: {
    value: defaultIamLimits.maxUsers,
    setting: '`Iam.setLimits`, maxUsers',
    filledBy:
      'holders of the right to create users or of the password of open pairing; three quarters of them any host nearby while local ' +
      'open pairing is on',
    next:
      'By local open pairing: 5.00 from three quarters on. The rest is for users that the owner adds, and for open pairing by ' +
      'password; then 5.00, too. Existing users are served.',
    freedWhen: 'A user is deleted',
    test: ['test/device/iam/pairing.test.ts', 'test/device/iam/endpoints/answers.test.ts'],
  },
  'Fingerprints of one user': {
    value: defaultIamLimits.maxFingerprintsPerUser,
    setting: '`Iam.setLimits`, maxFingerprintsPerUser',
    filledBy: 'that user',
    next: 'That user gets 5.00; others have their own',
    freedWhen: 'A fingerprint is removed',
    test: 'test/device/iam/endpoints/answers.test.ts',
  },
  "Changes of a user's own record": {
    value: [CHANGE_BURST, CHANGE_SECONDS],
    unit: '# at once, then one every # s',
    filledBy: 'that user',
    next: 'For it: 4.29 with Max-Age. Others change theirs, and those who manage users change all.',
    freedWhen: 'The rate allows the next',
    test: ['test/device/iam/endpoints/answers.test.ts', 'test/device/iam/endpoints/change-rates.test.ts'],
  },
  'Keys of users whose last day is known': {
    value: MAX_KEYS,
    filledBy: 'users',
    next: 'Its day is noted: the key that was noted first goes',
    freedWhen: 'The device ends',
    test: 'test/device/iam/key-use.test.ts',
  },
};
