import { defineConfig } from 'vitest/config';

/** Tests of the package in a real browser. One file at a time: each starts a Chromium. */
export default defineConfig({
  test: {
    include: ['test/browser/**/*.test.ts'],
    globalSetup: ['test/browser/setup.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    reporters: ['default', './test/support/closing-lines.ts'],
    pool: 'forks',
    fileParallelism: false,
  },
});
