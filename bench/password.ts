/**
 * A password authentication over an open direct connection, from the client's call until both ends have verified each
 * other: scrypt at its real cost, the exchange, and two round trips on loopback. Each round starts a device under
 * access control and a client as separate processes.
 *
 * `cold` is the first authentication of both processes: the exchange is loaded, and its code has never run. `warm` are
 * the later ones, paced by the device's limit of attempts.
 */
import { withChildren } from './processes/parent.ts';
import { type Report, type Row, spread } from './report.ts';

const ROUNDS = 5;
/** Authentications of a round after the first. */
const LATER = 6;
/** ms between them: a device allows five a second. */
const PAUSE = 250;
const ids = { productId: 'pr-bench', deviceId: 'de-bench' };
const user = { username: 'bench', password: 'correct horse battery staple' };

export async function run(progress: (step: string) => void): Promise<Report> {
  const [cold, warm]: [number[], number[]] = [[], []];
  for (let round = 1; round <= ROUNDS; round++) {
    progress(`round ${round} of ${ROUNDS}`);
    const [first = Number.NaN, ...later] = await logins();
    cold.push(first);
    warm.push(...later);
  }
  const row = (name: string, times: readonly number[]): Row => ({
    case: name,
    unit: 'ms',
    better: 'lower',
    ours: spread(times),
    peers: {},
  });
  return {
    bench: 'password',
    about: 'a password authentication over an open direct connection, scrypt included.',
    rows: [row('cold', cold), row('warm', warm)],
    goals: [
      { case: 'cold', atMost: 250 },
      { case: 'warm', atMost: 250 },
    ],
  };
}

/** Returns the ms of each authentication, the cold one first. */
function logins(): Promise<number[]> {
  return withChildren(async (start) => {
    const [device, client] = [start('device'), start('client')];
    const { fingerprint: deviceFingerprint } = await device.call<{ fingerprint: string }>('identity');
    const { localPort } = await device.call<{ localPort: number }>('start', { ...ids, iam: true });
    await device.call('addUser', user);
    await client.call('connect', { name: 'direct', options: { ...ids, deviceFingerprint, localPort } });
    const times: number[] = [];
    for (let count = 0; count <= LATER; count++) {
      times.push(await client.call<number>('logIn', { name: 'direct', ...user }));
      await new Promise((resolve) => setTimeout(resolve, PAUSE));
    }
    return times;
  });
}
