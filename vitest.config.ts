/** The test runner: which files, and how long each test may take. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { defineConfig } from 'vitest/config';
import { LOOPBACK } from './test/support/multicast.ts';
import { tiers } from './test/support/tiers.ts';

/**
 * What a transformed module depends on beside its own text. Vitest does not read the settings of TypeScript, and clears
 * the folder under a run when packages have changed: each state of these files has a folder of its own.
 */
const settings = ['node_modules/.package-lock.json', 'tsconfig.base.json', 'test/tsconfig.json'];
const state = createHash('sha256')
  .update(settings.map((file) => readFileSync(new URL(file, import.meta.url))).join(''))
  .digest('hex');

export default defineConfig({
  plugins: [tiers(import.meta.dirname)],
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/lab/**', 'test/cluster/**', 'test/browser/**'],
    tags: [
      {
        name: 'slow',
        description: 'takes more than 200 ms: `npm run test:slow`',
        timeout: Number(process.env.SVC_SLOW_TIMEOUT ?? 300_000),
      },
    ],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // Parties of the tests look for each other on loopback: a device of the real network may have any ids.
    env: { SVC_MDNS_INTERFACES: LOOPBACK },
    setupFiles: ['./test/support/process-reports.ts'],
    reporters: ['default', './test/support/closing-lines.ts'],
    pool: 'forks',
    // The files of a worker share their modules, which hold no state of a test. Loading them again for each file would
    // take a fifth of the time.
    isolate: false,
    // By default one processor stays idle, which on two is half of them.
    maxWorkers: '100%',
    // With as many workers no processor is free for the helper threads of V8's collector, and a collection waits for
    // them: a sixth of the time.
    execArgv: ['--single-threaded-gc'],
    experimental: { fsModuleCache: true, fsModuleCachePath: `build/modules/${state}` },
    // Node itself loads what is built.
    server: { deps: { external: [/\/dist\//] } },
  },
});
