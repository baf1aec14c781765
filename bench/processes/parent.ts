/** The parent's side of bench processes: starts them, calls into them, and leaves none behind. */
import { type ChildProcess, fork } from 'node:child_process';
import { rmSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

interface Answer {
  readonly id: number;
  readonly result?: unknown;
  readonly error?: string;
}

export class Child {
  readonly #child: ChildProcess;
  readonly #name: string;
  readonly #pending = new Map<number, { resolve: (result: never) => void; reject: (error: Error) => void }>();
  readonly #exited: Promise<void>;
  #next = 1;

  /** @param name of a script of this folder, without extension */
  constructor(name: string) {
    this.#name = name;
    this.#child = fork(fileURLToPath(new URL(`./${name}.js`, import.meta.url)), { execArgv: ['--expose-gc'] });
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

  /** Runs `call` in the child. */
  call<Result>(call: string, argument?: unknown): Promise<Result> {
    const id = this.#next++;
    return new Promise<Result>((resolve, reject) => {
      this.#pending.set(id, { resolve, reject });
      this.#child.send({ id, call, argument }, (error) => error && reject(new Error(`${this.#name}: ${error.message}`)));
    });
  }

  /** Ends the process and waits until it is gone. */
  async stop(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#exited;
  }
}

/** Runs `work` with children started by `start`, and ends them whatever happens. */
export async function withChildren<Result>(work: (start: (name: string) => Child) => Promise<Result>): Promise<Result> {
  const children: Child[] = [];
  const start = (name: string): Child => {
    const child = new Child(name);
    children.push(child);
    return child;
  };
  try {
    return await work(start);
  } finally {
    await Promise.all(children.map((child) => child.stop()));
  }
}

/** Runs `work` with an empty directory that is gone afterwards, also when the bench is interrupted. */
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
