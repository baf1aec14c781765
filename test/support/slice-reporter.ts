/**
 * Closing lines of a run: which slice of the large matrices ran, and one line that a script can add up:
 * `tests: N passed, N failed, N skipped`.
 */
import type { Reporter, TestModule } from 'vitest/node';

export default class SliceReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const count = { passed: 0, failed: 0, skipped: 0 };
    for (const module of modules) {
      if (module.state() === 'failed' && module.errors().length > 0) count.failed += 1;
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        if (state !== 'pending') count[state] += 1;
      }
    }
    const slice =
      process.env.SVC_TEST_LONG === undefined ? 'a slice of the large matrices (npm run test:long runs all)' : 'the large matrices in full';
    process.stdout.write(`\nslice: ${slice}\ntests: ${count.passed} passed, ${count.failed} failed, ${count.skipped} skipped\n`);
  }
}
