/**
 * Commands of `svc` that run to their end, for tests. Processes that keep running: `test/support/fixture/processes.ts`.
 */
import { MAIN } from '../support/fixture/processes.ts';
import { reportOf, TestProcess } from '../support/process.ts';
import { svcInProcess } from './in-process.ts';

export interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs `svc` as a process to its end. */
export async function svcProcess(
  { input = '', variables }: { input?: string; variables?: NodeJS.ProcessEnv },
  ...args: string[]
): Promise<Finished> {
  const { code, stdout, stderr } = await new TestProcess(process.execPath, [MAIN, ...args], { input, variables }).ended;
  return { code, stdout, stderr };
}

/** `svc` for the tests of one file. The first of each of `subcommands` is a process, the others run in the test's. */
export class Commands {
  readonly #processes: Set<string>;

  constructor(...subcommands: string[]) {
    this.#processes = new Set(subcommands);
  }

  /** Runs `svc` to its end. */
  readonly svc = async (...args: string[]): Promise<Finished> => {
    const [subcommand = ''] = args;
    return this.#processes.delete(subcommand) ? svcProcess({}, ...args) : svcInProcess(args);
  };

  /** The same; it must succeed, and print JSON. */
  readonly svcJson = async (...args: string[]): Promise<Record<string, unknown>> => {
    const { code, stdout, stderr } = await this.svc(...args, '--json');
    if (code !== 0) throw new Error(reportOf(['svc', ...args], `ended with ${code}`, { stdout, stderr }));
    return JSON.parse(stdout);
  };
}
