/** The test runner: which files, and how long each test may take. */
import { defineConfig } from 'vitest/config';
import { sizedFiles } from './test/support/sized-files.ts';

const long = process.env.SVC_TEST_LONG !== undefined;
/** A long run after a short one: the files that are the same in both are left out. */
const rest = process.env.SVC_TEST_LONG === 'rest';

export default defineConfig({
  test: {
    include: rest ? sizedFiles(import.meta.dirname) : ['test/**/*.test.ts'],
    exclude: ['test/lab/**', 'test/cluster/**', 'test/browser/**'],
    testTimeout: long ? 900_000 : 60_000,
    hookTimeout: 60_000,
    setupFiles: ['./test/support/process-reports.ts'],
    reporters: ['default', './test/support/slice-reporter.ts'],
    pool: 'forks',
    // The files of a worker share their modules, which hold no state of a test. Loading them again for each file would
    // take a fifth of the time.
    isolate: false,
    // By default one processor stays idle, which on two is half of them.
    maxWorkers: '100%',
    // With as many workers no processor is free for the helper threads of V8's collector, and a collection waits for
    // them: a sixth of the time.
    execArgv: ['--single-threaded-gc'],
  },
});
