/** The parent's side of bench processes: starts them, calls them, and leaves none behind. */
import { type ChildProcess, fork } from 'node:child_process';
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { processScript } from '../root.ts';

interface Answer {
  readonly id: number;
  readonly result?: unknown;
  readonly error?: string;
}

/** The program that a child runs. */
export interface Program {
  /** Name in messages. */
  readonly name: string;
  readonly script: string;
  readonly args?: readonly string[];
  /** Executable, and its arguments before the script. Default: this Node, with the collector exposed. */
  readonly command?: readonly string[];
}

/** Returns one of our own programs. @param name of a script in this folder, without extension */
export function program(name: string, ...args: string[]): Program {
  return { name, script: processScript(name), args };
}

export class Child {
  readonly #child: ChildProcess;
  readonly #name: string;
  readonly #pending = new Map<number, { resolve: (result: never) => void; reject: (error: Error) => void }>();
  readonly #exited: Promise<void>;
  #next = 1;

  constructor({ name, script, args = [], command = [process.execPath, '--expose-gc'] }: Program) {
    const [execPath, ...execArgv] = command;
    this.#name = name;
    this.#child = fork(script, args, { execPath, execArgv });
    this.#child.on('message', ({ id, result, error }: Answer) => {
      const call = this.#pending.get(id);
      this.#pending.delete(id);
      if (error === undefined) call?.resolve(result as never);
      else call?.reject(new Error(`${name}: ${error}`));
    });
    this.#exited = new Promise((resolve) => {
      this.#child.once('exit', (code, signal) => {
        for (const { reject } of this.#pending.values()) reject(new Error(`${name} ended (${code ?? signal})`));
        resolve();
      });
    });
  }

  /** Runs `call` in the child, and returns its result. */
  call<Result>(call: string, argument?: unknown): Promise<Result> {
    const id = this.#next++;
    return new Promise<Result>((resolve, reject) => {
      this.#pending.set(id, { resolve, reject });
      this.#child.send({ id, call, argument }, (error) => error && reject(new Error(`${this.#name}: ${error.message}`)));
    });
  }

  /** Runs `work`. @returns the processor time of the child meanwhile, ms (Linux), and the result */
  async used<Result>(work: () => Promise<Result>): Promise<{ used: number; result: Result }> {
    const before = this.#processorTime();
    const result = await work();
    return { used: this.#processorTime() - before, result };
  }

  /** Processor time of all threads, ms. */
  #processorTime(): number {
    const threads = `/proc/${this.#child.pid}/task`;
    const times = readdirSync(threads).map((thread) => Number(readFileSync(join(threads, thread, 'schedstat'), 'utf8').split(' ')[0]));
    return times.reduce((sum, time) => sum + time, 0) / 1e6;
  }

  /** Suspends the process. Its sockets stay open. */
  pause(): void {
    this.#child.kill('SIGSTOP');
  }

  /** Ends the process and waits until it is gone. */
  async stop(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#exited;
  }
}

/** Starts one of our own processes by name, or any program. */
export type Start = (what: string | Program) => Child;

/** Runs `work` with children started by `start`, and always ends them. */
export async function withChildren<Result>(work: (start: Start) => Promise<Result>): Promise<Result> {
  const children: Child[] = [];
  const start: Start = (what) => {
    const child = new Child(typeof what === 'string' ? program(what) : what);
    children.push(child);
    return child;
  };
  try {
    return await work(start);
  } finally {
    await Promise.all(children.map((child) => child.stop()));
  }
}

/** Runs `work` with an empty directory. Removes it afterwards, also when the bench is interrupted. */
export async function withDirectory<Result>(work: (directory: string) => Promise<Result>): Promise<Result> {
  const directory = await mkdtemp(join(tmpdir(), 'svc-bench-'));
  const remove = (): void => rmSync(directory, { recursive: true, force: true });
  process.once('exit', remove);
  try {
    return await work(directory);
  } finally {
    process.off('exit', remove);
    remove();
  }
}
