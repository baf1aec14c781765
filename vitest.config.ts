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
    // The files of a worker share their modules, which keep nothing but what is the same for all: loading them anew for each file is a fifth of the time.
    isolate: false,
    // By default one processor is left free, which on two is half of them.
    maxWorkers: '100%',
    // Helpers of V8's collector find no processor free beside as many workers, and a collection waits for them: a sixth of the time.
    execArgv: ['--single-threaded-gc'],
  },
});
