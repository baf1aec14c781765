/**
 * Selects the claims to prove now: all of them, or those that changed and a tenth of the others. A claim has changed
 * when the cache has no proof of it or, where the cache is empty as in a clean checkout, when it differs from an
 * earlier commit.
 */
import { spawnSync } from 'node:child_process';
import { type Entry, isDone } from '../list.ts';
import { filesOf, type ProofCache, proverFiles } from './cache.ts';
import type { Claim } from './claims.ts';

export interface Options {
  /** All claims, whatever is cached. */
  readonly all: boolean;
  /** Commit to compare with claims that the cache does not know. */
  readonly since?: string | undefined;
  /** Which tenth of the unchanged claims, 0 to 9; by default the number of commits, so that it rotates. */
  readonly tenth?: number | undefined;
}

export interface Selection {
  readonly claims: readonly Claim[];
  /** How many of the claims are proved because they changed. */
  readonly changed: number;
  readonly tenth: number;
}

export function select(
  root: string,
  claims: readonly Claim[],
  cache: Pick<ProofCache, 'has'>,
  { all, since, tenth: given }: Options,
): Selection {
  const tenth = (given ?? Number(git(root, 'rev-list', '--count', 'HEAD') ?? 0)) % 10;
  const differs = since === undefined ? () => true : differsFrom(root, since);
  const changed = new Set(claims.filter((claim) => all || (!cache.has(claim) && differs(claim))));
  const others = claims.filter((claim) => !changed.has(claim)).filter((_, at) => at % 10 === tenth);
  const chosen = new Set([...changed, ...others]);
  return { claims: claims.filter((claim) => chosen.has(claim)), changed: changed.size, tenth };
}

/** Whether a claim, its files or the prover differ from a commit. True when git does not know the commit. */
function differsFrom(root: string, commit: string): (claim: Claim) => boolean {
  const names = git(root, 'diff', '--name-only', commit, '--');
  const list = git(root, 'show', `${commit}:test/conformance/implementation.json`);
  if (names === null || list === null) return () => true;
  const files = new Set(names.split('\n'));
  if (proverFiles(root).some((file) => files.has(file))) return () => true;
  const earlier = new Set((JSON.parse(list) as Entry[]).filter(isDone).map(({ symbol, test, path = '' }) => `${symbol} ${test} ${path}`));
  return (claim) => {
    const { symbol, test, path } = claim.row;
    return !earlier.has(`${symbol} ${test} ${path}`) || filesOf(root, claim).some((file) => files.has(file));
  };
}

function git(root: string, ...args: string[]): string | null {
  const { status, stdout } = spawnSync('git', args, { cwd: root, encoding: 'utf8' });
  return status === 0 ? stdout.trim() : null;
}
