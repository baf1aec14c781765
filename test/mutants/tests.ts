/**
 * Runs test files of a copy with vitest and derives the state of a mutant.
 *
 *   killed    a test failed, an error went unhandled while tests ran, or the time ran out, as in an endless loop
 *   survived  every test passed
 *   invalid   no test ran, or a test file could not be loaded: the run says nothing about the tests
 */
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { run } from './process.ts';

export type Outcome = 'killed' | 'survived' | 'invalid';

/**
 * Time limits of one test or hook, ms, with and without a mutation. A test in virtual time that waits for ever takes
 * all of it.
 */
const TEST_LIMIT = 20_000;
/** Heap limit of each process, MiB. It ends an endless loop that collects objects. */
const HEAP = 1024;

/** The part of the output of vitest's JSON reporter that is used here. */
export interface Report {
  readonly testResults: readonly {
    readonly name: string;
    readonly startTime: number;
    readonly endTime: number;
    readonly status: string;
    readonly message: string;
    readonly assertionResults: readonly { readonly fullName: string; readonly status: string }[];
  }[];
}

export interface TestRun {
  readonly outcome: Outcome;
  /** The first test that failed, or why the run failed without one. */
  readonly by: string;
  /** Time of each file, ms, by its path relative to the root. */
  readonly times: ReadonlyMap<string, number>;
}

export interface RunSettings {
  /** Time limit of the run, ms. */
  readonly limit: number;
  /** Stop at the first test that fails. */
  readonly stopEarly: boolean;
  /** Number of parallel processes. */
  readonly workers: number;
}

/** Runs `tests` in the copy at `root`. */
export async function runTests(root: string, tests: readonly string[], { limit, stopEarly, workers }: RunSettings): Promise<TestRun> {
  const file = join(root, 'build/mutant-report.json');
  rmSync(file, { force: true });
  const args = [join(root, 'node_modules/vitest/vitest.mjs'), 'run', ...tests, '--reporter=json', `--outputFile=${file}`];
  args.push(`--maxWorkers=${workers}`, `--testTimeout=${TEST_LIMIT}`, `--hookTimeout=${TEST_LIMIT}`, ...(stopEarly ? ['--bail=1'] : []));
  const env = { ...process.env, NODE_OPTIONS: `--max-old-space-size=${HEAP}`, SVC_SLOW_TIMEOUT: String(TEST_LIMIT) };
  const { status, output } = await run(args, root, limit, env);
  if (status === null) return { outcome: 'killed', by: `not done after ${limit / 1000} s`, times: new Map() };
  return { ...verdict(readReport(file), status, output), times: timesOf(readReport(file), root) };
}

/** Derives the state of a mutant from the exit status and the report of its tests. */
export function verdict(report: Report | null, status: number, output = ''): Pick<TestRun, 'outcome' | 'by'> {
  const files = report?.testResults ?? [];
  const tests = files.flatMap(({ assertionResults }) => assertionResults);
  const failed = tests.find((test) => test.status === 'failed');
  if (failed !== undefined) return { outcome: 'killed', by: failed.fullName };
  if (/heap out of memory/.test(output)) return { outcome: 'killed', by: 'out of memory' };
  const broken = files.find((file) => file.status === 'failed' && file.assertionResults.length === 0);
  if (broken !== undefined) return { outcome: 'invalid', by: broken.message };
  if (!tests.some((test) => test.status === 'passed')) return { outcome: 'invalid', by: output.slice(-2000) || 'no test ran' };
  return status === 0 ? { outcome: 'survived', by: '' } : { outcome: 'killed', by: 'an error outside of the tests' };
}

function readReport(file: string): Report | null {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return null;
  }
}

function timesOf(report: Report | null, root: string): Map<string, number> {
  const entries = (report?.testResults ?? []).map(({ name, startTime, endTime }): [string, number] => [
    name.slice(root.length + 1),
    endTime - startTime,
  ]);
  return new Map(entries);
}
