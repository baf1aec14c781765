/**
 * Processes that tests start. Every error about one contains its command line, how it ended and the end of its output;
 * `processReports` returns the same for all that ran during a test, which `process-reports.ts` adds to any failure of a
 * test. Secrets in arguments and output are omitted.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** Code that `svc` caches for its next start: shared by all tests, outside the user's cache. */
const CACHE = fileURLToPath(new URL('../../build/cache', import.meta.url));

/** Limits of a report: characters of each output and of an argument, and number of processes. */
const OUTPUT_LIMIT = 4_096;
const ARGUMENT_LIMIT = 200;
const REPORT_LIMIT = 8;

/** Options and members of pairing strings whose values are secret. */
const SECRET_OPTION = /^--(sct|token|secret|password)$/;
const SECRET_LINK = /#~[\w-]+/g;
const SECRET_MEMBER = /\b(pwd|sct|secret|password|token)(["']?[=:]\s*["']?)[^,\s"'&]+/gi;

export interface ProcessOptions {
  /** All of standard input; default: none. */
  readonly input?: string | undefined;
  /** Standard input stays open for `write`. */
  readonly interactive?: boolean;
  readonly cwd?: string;
  /** Variables beside those of this process. */
  readonly variables?: NodeJS.ProcessEnv | undefined;
}

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export class TestProcess {
  stdout = '';
  stderr = '';
  /** Lines of standard output, each as soon as it is complete. */
  readonly lines: string[] = [];
  /** Settles when it has ended and all of its output has arrived. Never rejects. */
  readonly ended: Promise<Ended>;
  /** Settles when its standard output has ended, which may be earlier. Never rejects. */
  readonly outputEnded: Promise<void>;
  readonly #child: ChildProcess;
  readonly #command: readonly string[];
  #signalled: NodeJS.Signals | undefined;
  #end: Ended | undefined;
  #waiting: (() => void)[] = [];

  constructor(command: string, args: readonly string[], { input, interactive = false, cwd, variables }: ProcessOptions = {}) {
    this.#command = [command, ...args];
    const stdio = [interactive || input !== undefined ? 'pipe' : 'ignore', 'pipe', 'pipe'] as const;
    this.#child = spawn(command, args, { stdio: [...stdio], cwd, env: { ...process.env, XDG_CACHE_HOME: CACHE, ...variables } });
    const { stdin, stdout, stderr } = this.#child;
    // A command that reads nothing may have ended.
    stdin?.on('error', () => {});
    if (!interactive) stdin?.end(input);
    stdout?.setEncoding('utf8').on('data', (text: string) => this.#wrote(text));
    stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.stderr += text;
      this.#wake();
    });
    this.#child.on('error', ({ message }) => (this.stderr += message));
    if (stdout !== null) createInterface({ input: stdout }).on('line', (line) => this.#line(line));
    this.outputEnded = new Promise((resolve) => stdout?.once('end', () => resolve()));
    this.ended = this.#closed();
    track(this);
  }

  get pid(): number {
    return this.#child.pid as number;
  }

  get running(): boolean {
    return this.#end === undefined;
  }

  /** Waits for the first line of standard output that `wanted` accepts. Rejects when the process ends before. */
  async line(wanted: (line: string) => boolean = () => true): Promise<string> {
    return this.until('the line that was waited for', () => this.lines.find(wanted));
  }

  /** The lines of standard output as they arrive, until the process ends. */
  async *eachLine(): AsyncGenerator<string> {
    for (let next = 0; this.running || next < this.lines.length; ) {
      if (next < this.lines.length) yield this.lines[next++] as string;
      else await this.#news();
    }
  }

  /**
   * Returns the result of `find`, called again after each output until it is defined. Rejects when the process ends
   * before.
   */
  async until<T>(what: string, find: () => T | undefined): Promise<T> {
    for (;;) {
      const found = find();
      if (found !== undefined) return found;
      if (!this.running) throw this.failure(`ended before ${what}`);
      await this.#news();
    }
  }

  /** Its standard output when it exits with 0. Rejects otherwise. */
  async succeeded(): Promise<string> {
    const { code, stdout } = await this.ended;
    if (code !== 0) throw this.failure('failed');
    return stdout;
  }

  /** Writes to standard input. */
  write(text: string): void {
    this.#child.stdin?.write(text);
  }

  endInput(): void {
    this.#child.stdin?.end();
  }

  /** Sends a signal and waits for the end. */
  end(signal: NodeJS.Signals = 'SIGTERM'): Promise<Ended> {
    this.kill(signal);
    return this.ended;
  }

  kill(signal: NodeJS.Signals = 'SIGKILL'): void {
    if (!this.running) return;
    this.#signalled = signal;
    this.#child.kill(signal);
  }

  /** An error that states what is wrong with this process, and its report. */
  failure(what: string): Error {
    return new Error(`the process ${what}\n${this.report()}`);
  }

  /** Command line, state and last output. */
  report(): string {
    return reportOf(this.#command, this.#state(), this);
  }

  #state(): string {
    if (this.#end === undefined) return `still runs as ${this.pid}`;
    const { code, signal } = this.#end;
    if (signal === null) return `ended with ${code}${this.#signalled === undefined ? '' : ` after ${this.#signalled} from the test`}`;
    return `ended by ${signal}${this.#signalled === signal ? ' from the test' : ''}`;
  }

  async #closed(): Promise<Ended> {
    const [code, signal] = await new Promise<[number | null, NodeJS.Signals | null]>((resolve) =>
      this.#child.once('close', (...how) => resolve(how)),
    );
    this.#end = { code, signal, stdout: this.stdout, stderr: this.stderr };
    this.#wake();
    return this.#end;
  }

  #wrote(text: string): void {
    this.stdout += text;
    this.#wake();
  }

  #line(line: string): void {
    this.lines.push(line);
    this.#wake();
  }

  #news(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  #wake(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}

/** A process or command that runs during a test and can report on itself. */
export interface Reporting {
  readonly running: boolean;
  report(): string;
}

/** Processes and commands of this worker's tests that are still reported. */
const started = new Set<Reporting>();

/** Counts it as started now. */
export function track(reporting: Reporting): void {
  started.add(reporting);
}

/** Reports of the latest that run, or have ended since `forgetEnded`. */
export function processReports(): string[] {
  return [...started].slice(-REPORT_LIMIT).map((each) => each.report());
}

/** Ended processes are no longer reported. */
export function forgetEnded(): void {
  for (const each of started) if (!each.running) started.delete(each);
}

/** Kills the processes that a test file has left. */
export async function endProcesses(): Promise<void> {
  await Promise.all([...started].map((each) => each instanceof TestProcess && each.end('SIGKILL')));
  started.clear();
}

/** A command line without secrets, a state, and the last of both outputs. */
export function reportOf(command: readonly string[], state: string, output: Pick<Ended, 'stdout' | 'stderr'>): string {
  const lines = [`$ ${commandLine(command)}`, state];
  for (const name of ['stdout', 'stderr'] as const) if (output[name] !== '') lines.push(`${name}: ${tail(output[name])}`);
  return lines.join('\n');
}

function commandLine(words: readonly string[]): string {
  const shown = words.map((word, index) => (SECRET_OPTION.test(words[index - 1] ?? '') ? '***' : withoutSecrets(word)));
  return shown.map((word) => (word.length > ARGUMENT_LIMIT ? `${word.slice(0, ARGUMENT_LIMIT)}…` : word)).join(' ');
}

function tail(text: string): string {
  const shown = withoutSecrets(text.trimEnd());
  return shown.length > OUTPUT_LIMIT ? `…${shown.slice(-OUTPUT_LIMIT)}` : shown;
}

function withoutSecrets(text: string): string {
  return text.replace(SECRET_MEMBER, '$1$2***').replace(SECRET_LINK, '#~***');
}
