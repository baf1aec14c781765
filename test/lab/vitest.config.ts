import { defineConfig } from 'vitest/config';

/** The lab: real kernels' stacks over emulated links. One file at a time, since it prints figures. */
export default defineConfig({
  test: {
    include: ['test/lab/**/*.test.ts'],
    setupFiles: ['./test/support/process-reports.ts'],
    globalSetup: ['test/lab/setup.ts'],
    testTimeout: 900_000,
    hookTimeout: 60_000,
    reporters: ['default', './test/support/closing-lines.ts'],
    pool: 'forks',
    fileParallelism: false,
    disableConsoleIntercept: true,
  },
});
