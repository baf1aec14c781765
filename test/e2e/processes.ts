/** Real `svc` processes from dist/, for tests: long-running ones that print JSON events, and short ones that run to their end. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

export interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export type Event = { event: string } & Record<string, unknown>;

/** Runs `svc` to its end. */
export function svc(...args: string[]): Promise<Finished> {
  return svcWith({}, ...args);
}

/** The same with standard input and further variables of the environment. */
export async function svcWith(
  { input = '', variables = {} }: { input?: string; variables?: NodeJS.ProcessEnv },
  ...args: string[]
): Promise<Finished> {
  const child = spawn(process.execPath, [MAIN, ...args], { stdio: ['pipe', 'pipe', 'pipe'], env: { ...process.env, ...variables } });
  // A command that reads nothing may have ended.
  child.stdin.on('error', () => {});
  child.stdin.end(input);
  const output = { stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output.stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (output.stderr += text));
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, ...output };
}

/** The same; it must succeed, and its result is JSON. */
export async function svcJson(...args: string[]): Promise<Record<string, unknown>> {
  const { code, stdout, stderr } = await svc(...args, '--json');
  if (code !== 0) throw new Error(`svc ${args.join(' ')} ended with ${code}: ${stderr}`);
  return JSON.parse(stdout);
}

/** A process that runs until it is told to end. */
export class Running {
  readonly events: Event[] = [];
  stderr = '';
  readonly #child: ChildProcess;
  readonly #closed: Promise<unknown>;
  #changed: (() => void)[] = [];

  constructor(...args: string[]) {
    const child = spawn(process.execPath, [MAIN, ...args, '--json'], { stdio: ['ignore', 'pipe', 'pipe'] });
    this.#child = child;
    this.#closed = once(child, 'close').then(() => this.#wake());
    child.stderr.setEncoding('utf8').on('data', (text: string) => (this.stderr += text));
    createInterface({ input: child.stdout }).on('line', (line) => {
      this.events.push(JSON.parse(line));
      this.#wake();
    });
  }

  /** The `times`-th event of that name, waiting for it. Fails when the process ends first. */
  async event(name: string, times = 1): Promise<Event> {
    for (;;) {
      const found = this.events.filter(({ event }) => event === name)[times - 1];
      if (found !== undefined) return found;
      if (this.#child.exitCode !== null || this.#child.signalCode !== null)
        throw new Error(`no event ${name}: the process ended: ${this.stderr}`);
      await new Promise<void>((resolve) => this.#changed.push(resolve));
    }
  }

  /** Ends it and gives its exit code (null after SIGKILL). */
  async end(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
    this.#child.kill(signal);
    await this.#closed;
    return this.#child.exitCode;
  }

  #wake(): void {
    const waiting = this.#changed;
    this.#changed = [];
    for (const resolve of waiting) resolve();
  }
}
