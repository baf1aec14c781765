/**
 * A process that changes the state of a directory until it is killed:
 *
 *   node changing-child.mjs <directory> <first number>
 *
 * Change n sets the display name of user u<n mod 10> to n. Three are under way at any time; it prints the number of
 * each when it is acknowledged.
 */
import { writeSync } from 'node:fs';
import { openIam, Users } from '../../../dist/device/iam/index.js';

const [directory, first] = [process.argv[2], Number(process.argv[3])];
const flags = { localOpenPairing: false, passwordOpenPairing: false, passwordInvitePairing: false, localInitialPairing: false };
const users = Array.from({ length: 10 }, (_, index) => ({ user: { username: `u${index}`, fingerprints: [], notificationCategories: [] } }));
const iam = await openIam(directory, {
  firstConfiguration: () => ({ policies: [], roles: [] }),
  firstState: async () => ({ ...flags, users: Users.of(users) }),
  secrets: {
    makeVerifier: () => Promise.reject(new Error('there are no passwords')),
    seal: () => Promise.reject(new Error('there are no passwords')),
    unseal: () => Promise.reject(new Error('there are no passwords')),
    makeToken: () => 'token',
  },
});
let next = first;
await Promise.all([change(), change(), change()]);

async function change() {
  for (;;) {
    const number = next++;
    await iam.update((draft) => draft.setUserDisplayName(`u${number % 10}`, String(number)));
    writeSync(1, `${number}\n`);
  }
}
