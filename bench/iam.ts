/**
 * Access control of a device: a decision among ten roles of ten policies each, a change that is saved among a thousand users, and what a
 * thousand users add to a process. Each round is a process of its own; memory is looked at after a collection.
 */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { program, withChildren, withDirectory } from './processes/parent.ts';
import { type Report, type Row, spread } from './report.ts';

const ROUNDS = 5;
const USERS = 1000;

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
  const rows: Row[] = [
    { case: 'decision-10x10', unit: 'µs', better: 'lower', ours: spread(decision), peers: {} },
    { case: 'save-1000-users', unit: 'ms', better: 'lower', ours: spread(save), peers: {} },
    { case: 'resident-1000-users', unit: 'MB', better: 'lower', ours: spread(memory), peers: {} },
  ];
  return {
    bench: 'iam',
    about: 'access control: a decision with 10 roles × 10 policies, a saved change and the resident memory with 1,000 users.',
    rows,
    goals: [
      { case: 'decision-10x10', atMost: 5 },
      { case: 'save-1000-users', atMost: 20 },
      { case: 'resident-1000-users', atMost: 5 },
    ],
  };
}
