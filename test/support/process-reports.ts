/**
 * Adds the output of its processes (`process.ts`) to the errors of a failed test or hook. The test runner loads this
 * for each file.
 */
import { afterAll, afterEach, beforeEach, type RunnerTestSuite } from 'vitest';
import './byte-equality.ts';
import { endProcesses, forgetEnded, processReports } from './process.ts';

/** The runner's record of a test or a suite: errors, each with a stack that begins with its message. */
export interface Result {
  readonly errors?: readonly { message: string; stack?: string }[] | undefined;
}

type Suite = Pick<RunnerTestSuite, 'result' | 'tasks'>;

beforeEach(forgetEnded);
afterEach(({ task }) => addReports(task.result));
// The runner reads the source of a hook and refuses a first parameter that takes no fixture; a bound function shows
// none.
afterAll(endFile.bind(undefined));

async function endFile(_fixtures: object, file: Suite): Promise<void> {
  addSuiteReports(file);
  await endProcesses();
}

/** Adds to each message the reports that it does not contain. */
export function addReports(result: Result | undefined): void {
  for (const error of result?.errors ?? []) {
    const { message } = error;
    const reports = processReports().filter((report) => !message.includes(report));
    if (reports.length === 0) continue;
    error.message = [message, ...reports].join('\n\n');
    if (error.stack !== undefined) error.stack = error.stack.replace(message, () => error.message);
  }
}

/** Errors of a suite are those of its hooks. */
function addSuiteReports({ result, tasks }: Suite): void {
  addReports(result);
  for (const task of tasks) if (task.type === 'suite') addSuiteReports(task);
}
