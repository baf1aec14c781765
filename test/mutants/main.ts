/**
 * Mutation tests: can the tests fail? Each mutant of the list is a wrong change that the tests it names must notice.
 *
 *   1. read and check the list; a search text that does not match exactly once fails the run
 *   2. copy the tree to temporary folders, one per job
 *   3. run all named tests without a mutation; they must pass
 *   4. apply each mutation to a copy, run its tests, revert it
 *
 *   --part k/n    every n-th mutant, from the k-th
 *   --since X     also those whose source or tests differ from the commit X; both run by turns
 *   --budget S    starts no mutant after S seconds; those that did not run are counted as skipped
 *   --only text   mutants whose file, search text or replacement contains the text
 *   --jobs N      number of copies that run in parallel; default 2
 *   --json        prints one JSON object per line and mutant instead of text, before the two closing lines
 *
 * A mutant with a reason is equivalent. Its tests run, too: when one fails, the reason is wrong and the mutant counts
 * as killed. The exit status is 1 when a mutant survived or is invalid, and 2 when nothing could be run.
 */
import { parseArgs } from 'node:util';
import { Copy } from './copy.ts';
import { describe, faults, type Mutant, partOf, readMutants, touchedAnd } from './list.ts';
import { filesSince, killRuns } from './process.ts';
import { type Outcome, runTests, type TestRun } from './tests.ts';

/** Time limits, ms: the start of vitest, and the run without a mutation. */
const START_LIMIT = 30_000;
const BASELINE_LIMIT = 900_000;
/** Time limit of a mutant's tests, as a multiple of their time without a mutation. */
const PATIENCE = 5;

type State = Outcome | 'equivalent';

interface Result {
  readonly mutant: Mutant;
  readonly state: State;
  readonly by: string;
  readonly seconds: number;
}

export async function main(root: string, args: readonly string[]): Promise<number> {
  const base = root.replace(/\/$/, '');
  const options = parse(args);
  if (typeof options === 'string') return refuse([options]);
  const all = readMutants(base);
  const found = faults(all, base);
  if (found.length > 0) return refuse(found);
  const changed = options.since === '' ? [] : filesSince(base, options.since);
  if (typeof changed === 'string') return refuse([changed]);
  const part = partOf(all, options.part, options.of);
  const mutants = touchedAnd(all, part, changed).filter((mutant) => describe(mutant).includes(options.only));
  if (mutants.length === 0) return refuse(['no mutant is selected']);

  const say = options.json ? () => {} : (line: string) => process.stdout.write(`${line}\n`);
  say(`${mutants.length} of ${all.length} mutants, part ${options.part}/${options.of}`);
  const end = performance.now() + options.budget * 1_000;
  const copies = Array.from({ length: Math.min(options.jobs, mutants.length) }, () => new Copy(base));
  const remove = (): void => {
    for (const copy of copies) copy.remove();
  };
  const interrupt = (): never => {
    killRuns();
    remove();
    process.exit(130);
  };
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, interrupt);
  try {
    const tests = [...new Set(mutants.flatMap((mutant) => mutant.tests))].sort();
    // Nothing else runs meanwhile.
    const baseline = await runTests(copies[0]!.root, tests, { limit: BASELINE_LIMIT, stopEarly: false, workers: copies.length });
    if (baseline.outcome !== 'survived') return refuse([`the tests do not pass without a mutation: ${baseline.by}`]);
    say(`${baseline.times.size} test files pass without a mutation`);
    const results = await runAll(mutants, copies, { times: baseline.times, end }, (result) =>
      options.json ? process.stdout.write(`${JSON.stringify(result)}\n`) : say(lineOf(result)),
    );
    if (results.length === 0) return refuse([`the budget of ${options.budget} s was used up before a mutant ran`]);
    return finish(results, mutants.length - results.length);
  } finally {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.off(signal, interrupt);
    remove();
  }
}

/** Runs the mutants: each copy takes the next one when it is done with one, until `end`. */
async function runAll(
  mutants: readonly Mutant[],
  copies: readonly Copy[],
  { times, end }: { times: ReadonlyMap<string, number>; end: number },
  report: (result: Result) => void,
): Promise<Result[]> {
  const queue = [...mutants];
  const results: Result[] = [];
  const work = async (copy: Copy) => {
    for (let mutant = queue.shift(); mutant !== undefined && performance.now() < end; mutant = queue.shift()) {
      const result = await runOne(mutant, copy, times);
      results.push(result);
      report(result);
    }
  };
  await Promise.all(copies.map(work));
  return results;
}

async function runOne(mutant: Mutant, copy: Copy, times: ReadonlyMap<string, number>): Promise<Result> {
  const start = performance.now();
  const usual = mutant.tests.reduce((sum, test) => sum + (times.get(test) ?? 0), 0);
  const limit = START_LIMIT + Math.round(PATIENCE * usual);
  const tested: Pick<TestRun, 'outcome' | 'by'> = (await copy.with(mutant, () =>
    runTests(copy.root, mutant.tests, { limit, stopEarly: true, workers: 1 }),
  )) ?? {
    outcome: 'invalid',
    by: 'the core does not compile',
  };
  const seconds = Math.round((performance.now() - start) / 100) / 10;
  if (mutant.reason === undefined) return { mutant, state: tested.outcome, by: tested.by, seconds };
  if (tested.outcome === 'survived') return { mutant, state: 'equivalent', by: mutant.reason, seconds };
  return { mutant, state: tested.outcome, by: `listed as equivalent, but: ${tested.by}`, seconds };
}

function lineOf({ mutant, state, by, seconds }: Result): string {
  const detail = state === 'survived' ? mutant.tests.join(' ') : by;
  return `${state.padEnd(10)} ${seconds.toFixed(1).padStart(5)} s  ${describe(mutant)}${detail === '' ? '' : `\n${' '.repeat(20)}${detail}`}`;
}

/** Prints the two closing lines; `.ci/run` adds up the second. Returns the exit status. */
function finish(results: readonly Result[], left: number): number {
  const count = (state: State) => results.filter((result) => result.state === state).length;
  const [killed, survived, equivalent, invalid] = [count('killed'), count('survived'), count('equivalent'), count('invalid')];
  process.stdout.write(`mutants: ${killed} killed, ${survived} survived, ${equivalent} equivalent, ${invalid} invalid, ${left} not run\n`);
  process.stdout.write(`tests: ${killed + equivalent} passed, ${survived + invalid} failed, ${left} skipped\n`);
  return survived + invalid === 0 ? 0 : 1;
}

function refuse(reasons: readonly string[]): number {
  for (const reason of reasons) process.stderr.write(`mutants: ${reason}\n`);
  return 2;
}

interface Options {
  readonly part: number;
  readonly of: number;
  readonly since: string;
  /** s */
  readonly budget: number;
  readonly only: string;
  readonly jobs: number;
  readonly json: boolean;
}

/** Parses the options, or says what is wrong with them. */
const USAGE = `usage: npm run test:mutants [-- --part k/n] [--since COMMIT] [--budget S] [--only text] [--jobs N] [--json]`;

function parse(args: readonly string[]): Options | string {
  let values: ReturnType<typeof valuesOf>;
  try {
    values = valuesOf(args);
  } catch (error) {
    return `${(error as Error).message.split('. ')[0]}\n${USAGE}`;
  }
  if (values.help) return USAGE;
  const [part, of] = (/^(\d+)\/(\d+)$/.exec(values.part) ?? []).slice(1).map(Number);
  if (part === undefined || of === undefined || part < 1 || part > of) return `--part takes k/n with 1 ≤ k ≤ n, not ${values.part}`;
  const jobs = Number(values.jobs);
  if (!Number.isSafeInteger(jobs) || jobs < 1) return `--jobs takes a whole number from 1, not ${values.jobs}`;
  const budget = values.budget === undefined ? Number.POSITIVE_INFINITY : Number(values.budget);
  if (!(budget > 0)) return `--budget takes a number of seconds, not ${values.budget}`;
  return { part, of, since: values.since, budget, only: values.only, jobs, json: values.json };
}

function valuesOf(args: readonly string[]) {
  const options = {
    part: { type: 'string', default: '1/1' },
    since: { type: 'string', default: '' },
    budget: { type: 'string' },
    only: { type: 'string', default: '' },
    jobs: { type: 'string', default: '2' },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  } as const;
  return parseArgs({ args: [...args], options }).values;
}
