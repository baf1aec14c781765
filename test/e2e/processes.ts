/** `svc` from dist/ for tests: long-running processes that print JSON events, and commands that run to their end. */
import { fileURLToPath } from 'node:url';
import { reportOf, TestProcess } from '../support/process.ts';
import { svcInProcess } from './in-process.ts';

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
const long = process.env.SVC_TEST_LONG !== undefined;

export interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export type Event = { event: string } & Record<string, unknown>;

/** Runs `svc` as a process to its end. */
export async function svcProcess(
  { input = '', variables }: { input?: string; variables?: NodeJS.ProcessEnv },
  ...args: string[]
): Promise<Finished> {
  const { code, stdout, stderr } = await new TestProcess(process.execPath, [MAIN, ...args], { input, variables }).ended;
  return { code, stdout, stderr };
}

/**
 * `svc` for the tests of one file. In a long run every command is a process of its own. In a short one the first of each of `subcommands` is, and
 * the others run in the process of the test.
 */
export class Commands {
  readonly #processes: Set<string>;

  constructor(...subcommands: string[]) {
    this.#processes = new Set(subcommands);
  }

  /** Runs `svc` to its end. */
  readonly svc = async (...args: string[]): Promise<Finished> => {
    const [subcommand = ''] = args;
    return this.#processes.delete(subcommand) || long ? svcProcess({}, ...args) : svcInProcess(args);
  };

  /** The same; it must succeed, and its result is JSON. */
  readonly svcJson = async (...args: string[]): Promise<Record<string, unknown>> => {
    const { code, stdout, stderr } = await this.svc(...args, '--json');
    if (code !== 0) throw new Error(reportOf(['svc', ...args], `ended with ${code}`, { stdout, stderr }));
    return JSON.parse(stdout);
  };
}

/** A process that runs until it is told to end. */
export class Running {
  readonly #process: TestProcess;
  readonly #events: Event[] = [];

  constructor(...args: string[]) {
    this.#process = new TestProcess(process.execPath, [MAIN, ...args, '--json']);
  }

  /** What it has printed. */
  get events(): readonly Event[] {
    for (const line of this.#process.lines.slice(this.#events.length)) this.#events.push(JSON.parse(line));
    return this.#events;
  }

  get stderr(): string {
    return this.#process.stderr;
  }

  /** The `times`-th event of that name, waiting for it. Fails when the process ends first. */
  event(name: string, times = 1): Promise<Event> {
    return this.#process.until(`event ${name}`, () => this.events.filter(({ event }) => event === name)[times - 1]);
  }

  /** Ends it and gives its exit code (null after SIGKILL). */
  async end(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
    return (await this.#process.end(signal)).code;
  }
}
