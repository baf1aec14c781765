/**
 * `npm run conformance -- --prove [--all] [--since COMMIT] [--tenth N] [--only TEXT] [--why] [--budget S]`:
 * replaces the symbols of rows that are done and demands that their tests fail. Prints the unproved claims, with
 * `--why` also how the tests of the others failed, then figures. Begins no claim after S seconds. Last line:
 * `tests: N passed, N failed, N skipped`, counted in claims: proved, not proved or missing, and not proved again
 * because nothing changed or the time was over. Exit code 1 when something is not proved, or the time was over before
 * anything was.
 */
import { parseArgs } from 'node:util';
import { missingRows, type Row } from '../check.ts';
import { ProofCache } from './cache.ts';
import { claimsOf } from './claims.ts';
import { prove, type Verdict } from './prove.ts';
import { select } from './selection.ts';
import { proveTypes } from './types.ts';

export async function proveRows(root: string, rows: readonly Row[], args: string[]): Promise<number> {
  const began = performance.now();
  const options = parseArgs({
    args,
    options: {
      prove: { type: 'boolean' },
      all: { type: 'boolean', default: false },
      since: { type: 'string' },
      tenth: { type: 'string' },
      only: { type: 'string', default: '' },
      why: { type: 'boolean', default: false },
      budget: { type: 'string', default: 'Infinity' },
    },
  }).values;
  const budget = Number(options.budget) * 1000;
  if (!(budget > 0)) {
    print(`conformance: --budget takes a number of seconds, not ${options.budget}`);
    return 2;
  }
  const cache = new ProofCache(root);
  const all = claimsOf(rows);
  const claims = all.filter(({ key }) => key.includes(options.only));
  const tenth = options.tenth === undefined ? undefined : Number(options.tenth);
  const selection = select(root, claims, cache, { all: options.all, since: options.since, tenth });
  print(`${selection.claims.length} of ${claims.length} claims: ${selection.changed} changed, and tenth ${selection.tenth} of the others`);

  let decided = 0;
  const failed: Verdict[] = [];
  const decide = (verdict: Verdict): void => {
    const { claim, obstacle, failure = 'the type checker finds errors' } = verdict;
    decided++;
    cache.note(claim, obstacle === null);
    cache.save(all);
    if (obstacle === null && options.why) print(`proved: ${claim.key}\n  ${failure.split('\n')[0]}`);
    if (obstacle === null) return;
    failed.push(verdict);
    print(`not proved: ${claim.names.join('; ')}\n  ${claim.row.symbol}  ${claim.row.test}\n  ${obstacle}`);
  };
  const isType = ({ row }: Verdict['claim']) => row.kind === 'type';
  for (const verdict of proveTypes(root, selection.claims.filter(isType))) decide(verdict);
  await prove(
    root,
    selection.claims.filter((claim) => !isType(claim)),
    decide,
    () => performance.now() - began < budget,
  );

  const missing = missingRows(rows);
  for (const { surface, name, reason } of missing) print(`missing: ${surface}: ${name}: ${reason}`);
  const proved = decided - failed.length;
  const left = selection.claims.length - decided;
  const skipped = claims.length - decided;
  const names = failed.reduce((sum, { claim }) => sum + claim.names.length, 0);
  const seconds = ((performance.now() - began) / 1000).toFixed(0);
  print(
    `${proved} claims proved in ${seconds} s, ${failed.length} not proved (${names} rows), ${skipped} not proved again, ${left} of them for want of time`,
  );
  print(`tests: ${proved} passed, ${failed.length + missing.length} failed, ${skipped} skipped`);
  const hasRun = decided > 0 || selection.claims.length === 0;
  return failed.length + missing.length === 0 && hasRun ? 0 : 1;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
