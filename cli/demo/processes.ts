/**
 * The demo's child processes: starts them, watches their JSON lines, stops them, and never leaves one behind.
 *
 *   1. `svc` subcommands run as a user would run them, from dist, with `--json`.
 *   2. A long-running one is a `Running`: `event(name)` resolves with the JSON line of that name, past or future.
 *   3. `stopAll` ends all running ones: SIGTERM, after 3 s SIGKILL.
 *
 * The demo's checks are elsewhere (`steps.ts`).
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { orElse } from '../../protocol/or-else.ts';

const svc = fileURLToPath(new URL('../../svc/main.cjs', import.meta.url));

/** One JSON line of a `svc … --json` command. */
export type Line = { readonly event?: string } & Record<string, unknown>;

/** A child process that prints JSON lines on its standard output. */
export class LineProcess {
  readonly name: string;
  readonly child: ChildProcess;
  readonly exited: Promise<number | string>;
  readonly #lines: Line[] = [];
  readonly #waiting: { name: string; resolve: (line: Line) => void; reject: (error: Error) => void }[] = [];
  #errors = '';

  constructor(name: string, child: ChildProcess) {
    this.name = name;
    this.child = child;
    if (child.stdout) createInterface({ input: child.stdout }).on('line', (text) => this.#line(text));
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#errors = (this.#errors + text).slice(-4096);
    });
    this.exited = new Promise((resolve) => {
      child.on('exit', (code, signal) => {
        resolve(code ?? signal ?? 'unknown');
        for (const { reject } of this.#waiting.splice(0))
          reject(new Error(`${name} ended before it was expected to\n${this.#errors.trim()}`));
      });
    });
  }

  /** The first JSON line called `name`. Rejects when the process ends or `timeout` (ms) passes. */
  event(name: string, timeout = 20_000): Promise<Line> {
    const seen = this.#lines.find((line) => line.event === name);
    if (seen) return Promise.resolve(seen);
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`${this.name}: no "${name}" within ${timeout} ms\n${this.#errors.trim()}`)), timeout);
      const settle =
        <T>(how: (value: T) => void) =>
        (value: T): void => {
          clearTimeout(timer);
          how(value);
        };
      this.#waiting.push({ name, resolve: settle(resolve), reject: settle(reject) });
    });
  }

  /**
   * Sends `signal` and resolves with the exit code (or the signal's name) once the process has ended; SIGKILL after
   * `patience` ms.
   */
  async stop(signal: NodeJS.Signals, patience = 5_000): Promise<number | string> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return this.exited;
    this.child.kill(signal);
    const timer = setTimeout(() => this.child.kill('SIGKILL'), patience);
    const code = await this.exited;
    clearTimeout(timer);
    return code;
  }

  #line(text: string): void {
    const line = parse(text);
    if (line === null) return;
    this.#lines.push(line);
    for (const waiting of [...this.#waiting]) {
      if (waiting.name !== line.event) continue;
      this.#waiting.splice(this.#waiting.indexOf(waiting), 1);
      waiting.resolve(line);
    }
  }
}

/** All processes of one demo. */
export class Processes {
  readonly #running = new Set<LineProcess>();

  /** Starts `svc` with `args` and leaves it running. */
  start(name: string, args: readonly string[]): LineProcess {
    return this.#add(name, spawn(process.execPath, [svc, ...args], { stdio: ['ignore', 'pipe', 'pipe'] }));
  }

  /** Starts a script of the demo's own folder with an IPC channel. */
  script(name: string, file: string, args: readonly string[]): LineProcess {
    const path = fileURLToPath(new URL(file, import.meta.url));
    return this.#add(name, spawn(process.execPath, [path, ...args], { stdio: ['ignore', 'pipe', 'pipe', 'ipc'] }));
  }

  /** Runs one `svc` command to its end and returns the JSON it printed. */
  async run(args: readonly string[]): Promise<Line> {
    const child = spawn(process.execPath, [svc, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    let errors = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      errors += text;
    });
    const code = await new Promise((resolve) => child.on('close', resolve));
    if (code !== 0) throw new Error(`svc ${args.join(' ')} ended with ${code}: ${errors.trim()}`);
    return parse(output.trim()) ?? {};
  }

  /** Ends all running processes. */
  async stopAll(): Promise<void> {
    await Promise.all([...this.#running].map((running) => running.stop('SIGTERM', 3_000)));
  }

  #add(name: string, child: ChildProcess): LineProcess {
    const running = new LineProcess(name, child);
    this.#running.add(running);
    void running.exited.then(() => this.#running.delete(running));
    return running;
  }
}

function parse(text: string): Line | null {
  return text.startsWith('{') ? orElse(() => JSON.parse(text) as Line, null) : null;
}
