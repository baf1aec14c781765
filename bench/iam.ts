/**
 * Access control of a device. Each round runs in new processes; memory is sampled after a collection.
 *
 *   decision-10x10       a decision with ten roles and ten policies: each role has all ten, and two statements of each
 *                        policy are about the action, each under a condition
 *   save-1000-users      a change with 1,000 users, from `update` to its file on disk
 *   resident-1000-users  MB that loading 1,000 users adds to a process
 *   me-p50               round trips of `GET /iam/me` by a paired client, one at a time over one direct connection; its
 *                        peer `empty` is a resource of the same device that answers without a body, in turn with it
 */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { program, withChildren, withDirectory } from './processes/parent.ts';
import { percentile, type Report, type Row, spread } from './report.ts';

const ROUNDS = 5;
const USERS = 1000;
/** Rounds and requests of `me`. */
const TRIPS = { rounds: 9, warmUp: 3, count: 600 };

export async function run(progress: (step: string) => void): Promise<Report> {
  const [decision, save, memory]: [number[], number[], number[]] = [[], [], []];
  const iam = { ...program('iam'), command: [process.execPath, '--expose-gc', '--max-semi-space-size=1', '--compact-on-every-full-gc'] };
  await withDirectory(async (data) => {
    for (let round = 1; round <= ROUNDS; round++) {
      progress(`round ${round} of ${ROUNDS}`);
      const directory = join(data, `round-${round}`);
      await mkdir(directory);
      await withChildren(async (start) => {
        const [saving, loading] = [start(program('iam')), start(iam)];
        decision.push(await saving.call<number>('decide', { roles: 10, policies: 10 }));
        save.push(...(await saving.call<number[]>('save', { directory, count: USERS })));
        memory.push((await loading.call<number>('grow', { directory, count: USERS })) / 1e6);
      });
    }
  });
  progress('GET /iam/me');
  const { me, empty } = await trips();
  const rows: Row[] = [
    { case: 'decision-10x10', unit: 'µs', better: 'lower', ours: spread(decision), peers: {} },
    { case: 'save-1000-users', unit: 'ms', better: 'lower', ours: spread(save), peers: {} },
    { case: 'resident-1000-users', unit: 'MB', better: 'lower', ours: spread(memory), peers: {} },
    { case: 'me-p50', unit: 'µs', better: 'lower', ours: spread(me), peers: { empty: spread(empty) } },
  ];
  return {
    bench: 'iam',
    about:
      'access control: a decision with 10 roles × 10 policies, a saved change and the resident memory with 1,000 users; a round trip of GET /iam/me.',
    rows,
    goals: [
      { case: 'decision-10x10', atMost: 5 },
      { case: 'save-1000-users', atMost: 20 },
      { case: 'resident-1000-users', atMost: 5 },
      { case: 'me-p50', peer: 'empty', atMost: 1.3 },
    ],
  };
}

/** Median round-trip time of each round, µs. */
async function trips(): Promise<{ readonly me: number[]; readonly empty: number[] }> {
  const [me, empty]: [number[], number[]] = [[], []];
  await withChildren(async (start) => {
    const [device, client] = [start('device'), start('client')];
    const ids = { productId: 'pr-bench', deviceId: 'de-bench' };
    const { fingerprint: deviceFingerprint } = await device.call<{ fingerprint: string }>('identity');
    const { localPort } = await device.call<{ localPort: number }>('start', { ...ids, iam: true });
    await client.call('connect', { name: 'direct', options: { ...ids, deviceFingerprint, localPort } });
    await client.call('pair', { name: 'direct' });
    const median = async (path: string) =>
      percentile(await client.call<number[]>('requests', { name: 'direct', count: TRIPS.count, flight: 1, path }), 50);
    for (let round = 0; round < TRIPS.warmUp + TRIPS.rounds; round++) {
      const [withUser, without] = [await median('/iam/me'), await median('/empty')];
      if (round < TRIPS.warmUp) continue;
      me.push(withUser);
      empty.push(without);
    }
  });
  return { me, empty };
}
