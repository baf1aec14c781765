/**
 * The closing lines of a run: untagged tests that took long enough for the slow tier (`tiers.ts`), and one line that a
 * script can add up: `tests: N passed, N failed, N skipped`. Tests of the other tier count as none of the three.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import type { Reporter, TestCase, TestModule, Vitest } from 'vitest/node';
import { QUICK, SLOW } from './tiers.ts';

/** ms; three times the limit of the quick tier, since other processes may have taken a processor meanwhile. */
const LATE = 900;
/** Where a run of the quick tier lists its late tests for `late-tests.mjs`: `[{ file, name }]`. */
const LIST = 'build/late-tests.json';

export default class ClosingLines implements Reporter {
  #vitest!: Vitest;

  onInit(vitest: Vitest): void {
    this.#vitest = vitest;
  }

  /** @param unhandled errors outside of the tests, such as a worker that ended; each counts as a failed test */
  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly unknown[]): void {
    const count = { passed: 0, failed: unhandled.length, skipped: 0 };
    const late: TestCase[] = [];
    for (const module of modules) {
      // A file that cannot be loaded, or a hook that failed.
      for (const suite of [module, ...module.children.allSuites()]) if (suite.errors().length > 0) count.failed += 1;
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        if (state !== 'pending' && this.#isSelected(test)) count[state] += 1;
        if (!isSlow(test) && (test.diagnostic()?.duration ?? 0) > LATE) late.push(test);
      }
    }
    if (this.#filter === QUICK) this.#report(late);
    process.stdout.write(`\ntests: ${count.passed} passed, ${count.failed} failed, ${count.skipped} skipped\n`);
  }

  get #filter(): string | undefined {
    return this.#vitest.config.tagsFilter?.[0];
  }

  #isSelected(test: TestCase): boolean {
    const filter = this.#filter;
    if (this.#vitest.config.testNamePattern?.test(namesOf(test).join(' ')) === false) return false;
    return filter === QUICK ? !isSlow(test) : filter !== SLOW || isSlow(test);
  }

  #report(late: readonly TestCase[]): void {
    const { root } = this.#vitest.config;
    const list = late.map((test) => ({ file: relative(root, test.module.moduleId), name: namesOf(test).join(' ') }));
    mkdirSync(dirname(join(root, LIST)), { recursive: true });
    writeFileSync(join(root, LIST), JSON.stringify(list));
    for (const [index, { file, name }] of list.entries()) {
      const time = Math.round(late[index]?.diagnostic()?.duration ?? 0);
      process.stdout.write(`late: ${time} ms without the tag slow: ${file} ${name}\n`);
    }
  }
}

/** The names of its suites and its own. A pattern of the runner reads them joined by spaces. */
function namesOf(test: TestCase): string[] {
  const names = [test.name];
  for (let suite = test.parent; suite.type === 'suite'; suite = suite.parent) names.unshift(suite.name);
  return names;
}

function isSlow(test: TestCase): boolean {
  return test.tags.includes('slow');
}
