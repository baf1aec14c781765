/**
 * Runs cited tests through Vitest in this process, each run in a worker of its own that records or replaces
 * (worker.ts).
 */
import { join } from 'node:path';
import { createVitest, type TestCase, type Vitest } from 'vitest/node';
import { openModules } from './plugin.ts';
import type { Proof } from './replace.ts';
import type { Place } from './sources.ts';

export interface TestResult {
  readonly id: string;
  readonly name: string;
  /** Why it failed; null when it passed. */
  readonly failure: string | null;
  /** The prover failed, not the test. */
  readonly isOwnFault: boolean;
  /** ms */
  readonly duration: number;
  /** Outcomes of calls by place, when they were recorded. */
  readonly calls: Readonly<Record<string, string>>;
  /** How often the replacement took effect in the worker, until the test ended. */
  readonly effects: number;
}

/** ms that a slow test may take. */
const SLOW_TIMEOUT = 30_000;

export class Runner {
  readonly #root: string;
  readonly #vitest: Vitest;

  private constructor(root: string, vitest: Vitest) {
    this.#root = root;
    this.#vitest = vitest;
  }

  /** @param places whose modules can be replaced */
  static async start(root: string, places: readonly Place[]): Promise<Runner> {
    const setupFiles = [join(root, 'test/conformance/prove/worker.ts')];
    // vitest.config.ts: a slow test that waits for ever, as its symbol was replaced, ends after it.
    process.env.SVC_SLOW_TIMEOUT = String(SLOW_TIMEOUT);
    const options = {
      root,
      watch: false,
      reporters: [{}],
      setupFiles,
      maxWorkers: 1,
      isolate: true,
      silent: true,
      execArgv: ['--no-warnings'],
    };
    return new Runner(root, await createVitest('test', options, { plugins: [openModules(root, places)] }));
  }

  /** Runs the tests of a file whose full names match. @throws Error when the file cannot be loaded */
  async run(file: string, names: RegExp, proof: Proof): Promise<TestResult[]> {
    const project = this.#vitest.getRootProject();
    this.#vitest.provide('proof', proof);
    const specification = project.createSpecification(join(this.#root, file), { testNamePattern: names });
    const { testModules } = await this.#vitest.runTestSpecifications([specification]);
    const module = testModules.find(({ moduleId }) => moduleId === join(this.#root, file));
    if (module === undefined) throw new Error('it did not run');
    const results = [...module.children.allTests()].flatMap(resultOf);
    const [error] = module.errors();
    if (results.length === 0 && error !== undefined) throw new Error(error.message);
    return results;
  }

  close(): Promise<void> {
    return this.#vitest.close();
  }
}

function resultOf(test: TestCase): TestResult[] {
  const { state, errors = [] } = test.result();
  if (state !== 'passed' && state !== 'failed') return [];
  const { id, fullName } = test;
  const isOwnFault = errors.some(({ stacks }) => stacks?.[0]?.file.includes('/test/conformance/prove/'));
  const failure = state === 'failed' ? (errors[0]?.message ?? 'failed') : null;
  const name = fullName.replaceAll(' > ', ' ');
  const { calls = {}, effects = 0 } = test.meta();
  return [{ id, name, failure, isOwnFault, duration: test.diagnostic()?.duration ?? 0, calls, effects }];
}

/** The names of the tests of that title, which may be a template: `%s`, `$name` and `${…}` match anything. */
export function namesOf(title: string): RegExp {
  const parts = title.split(/%[sdifjoO#$]|\$\{[^}]*\}|\$[\w.]+/);
  return new RegExp(`(?:^| )${parts.map(literal).join('.*')}$`);
}

export function exactly(names: readonly string[]): RegExp {
  return new RegExp(`^(?:${names.map(literal).join('|')})$`);
}

function literal(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
}
