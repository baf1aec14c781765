/** Bench process: access control of a device, with many policies or many users. */

import { join } from 'node:path';
import {
  type Caller,
  defaultIamLimits,
  Iam,
  type IamConfiguration,
  type IamSecrets,
  openIam,
  type Policy,
  Rules,
  readState,
  STATE_FILE,
  stateDocument,
  Users,
} from '../../device/iam/index.ts';
import { readJson } from '../../platform/node/files.ts';
import { serve } from './child.ts';

const DECISIONS = 200_000;
const WARM_UP = 20_000;
const COLLECTIONS = 5;
const SAVES = 20;
const flags = { localOpenPairing: false, passwordOpenPairing: false, passwordInvitePairing: false, localInitialPairing: false };
const secrets: IamSecrets = {
  makeVerifier: () => Promise.reject(new Error('no password is set here')),
  seal: () => Promise.reject(new Error('no password is set here')),
  unseal: () => Promise.reject(new Error('no password is set here')),
  makeToken: () => 'abcdefghijkl',
};
/** Keeps loaded states alive, so that they count. */
const kept: Iam[] = [];

serve({
  /**
   * Returns the µs of one decision with roles of `policies` policies, each about the action, with a condition on the
   * user.
   */
  decide({ roles, policies }: { roles: number; policies: number }): number {
    const iam = new Iam({ configuration: configuration(roles, policies), state: { ...flags, users: users(roles) }, secrets });
    const callers: Caller[] = Array.from({ length: roles }, (_, index) => ({ fingerprint: fingerprint(index), isLocal: true }));
    const attributes = { 'IAM:Username': 'user-3' };
    let allowed = 0;
    const decide = (count: number) => {
      for (let index = 0; index < count; index++) {
        if (iam.check(callers[index % roles]!, 'Bench:Act', attributes)) allowed++;
      }
    };
    decide(WARM_UP);
    const before = process.hrtime.bigint();
    decide(DECISIONS);
    const took = Number(process.hrtime.bigint() - before) / 1000;
    if (allowed !== (WARM_UP + DECISIONS) / roles) throw new Error(`${allowed} decisions allowed`);
    return took / DECISIONS;
  },

  /** Returns the ms of each of several changes, in a directory with `count` users. */
  async save({ directory, count }: { directory: string; count: number }): Promise<number[]> {
    const iam = await openIam(directory, {
      firstConfiguration: () => configuration(1, 1),
      firstState: async () => ({ ...flags, users: users(count) }),
      secrets,
    });
    const times: number[] = [];
    for (let index = 0; index <= SAVES; index++) {
      const before = process.hrtime.bigint();
      await iam.update((draft) => draft.setUserDisplayName('user-0', `name ${index}`));
      if (index > 0) times.push(Number(process.hrtime.bigint() - before) / 1e6);
    }
    return times;
  },

  /** Returns the bytes by which the process grows when it loads a state with `count` users, after one without users. */
  async grow({ directory, count }: { directory: string; count: number }): Promise<number> {
    const rules = new Rules(defaultIamLimits);
    const load = async (document: unknown) => {
      const state = await readState(document, { rules, notificationCategories: [], secrets });
      kept.push(new Iam({ configuration: configuration(1, 1), state, secrets }));
    };
    await load(stateDocument({ ...flags, users: Users.of([]) }));
    const before = await resident();
    await load(await readJson(join(directory, STATE_FILE)));
    if (kept.at(-1)?.usernames.length !== count) throw new Error('not all users were loaded');
    return (await resident()) - before;
  },
});

function configuration(roles: number, policies: number): IamConfiguration {
  const ids = Array.from({ length: policies }, (_, index) => `policy-${index}`);
  return {
    policies: ids.map(policy),
    roles: Array.from({ length: roles }, (_, index) => ({ id: `role-${index}`, policies: ids })),
  };
}

/**
 * Statements about ten other actions, and two about the requested one: allowed to the user itself, denied above a
 * hundred degrees.
 */
function policy(id: string): Policy {
  const others = Array.from({ length: 10 }, (_, index) => ({ effect: 'Allow' as const, actions: [`Bench:Other${index}`], conditions: [] }));
  const own = { operator: 'StringEquals', key: 'IAM:Username', values: [`\${Connection:Username}`] } as const;
  const hot = { operator: 'NumericGreaterThan', key: 'Bench:Degrees', values: ['100'] } as const;
  return {
    id,
    statements: [
      ...others,
      { effect: 'Allow', actions: ['Bench:Act'], conditions: [own] },
      { effect: 'Deny', actions: ['Bench:Act'], conditions: [hot] },
    ],
  };
}

function users(count: number): Users {
  const entries = Array.from({ length: count }, (_, index) => ({
    user: {
      username: `user-${index}`,
      displayName: `User number ${index}`,
      role: `role-${index}`,
      fingerprints: [{ fingerprint: fingerprint(index), name: 'Phone' }],
      sct: `sct-${index}`.padEnd(12, 'x'),
      push: { token: `${index}`.padEnd(150, 't'), projectId: 'bench-project' },
      notificationCategories: [],
    },
    verifier: { kdf: 1 as const, salt: new Uint8Array(16).fill(index), value: new Uint8Array(32).fill(index) },
  }));
  return Users.of(entries);
}

function fingerprint(index: number): string {
  return index.toString(16).padStart(64, '0');
}

/** Returns the resident bytes after several collections: a single one leaves some garbage of the load. */
async function resident(): Promise<number> {
  for (let turn = 0; turn < COLLECTIONS; turn++) {
    globalThis.gc?.();
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return process.memoryUsage.rss();
}
