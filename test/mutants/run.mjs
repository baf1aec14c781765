/**
 * `npm run test:mutants -- [options]`: bundles the runner, which is TypeScript, and runs it with this Node.
 * test/mutants/main.ts has the options, and says what it does and prints.
 */
import { runMain } from '../support/bundle.mjs';

await runMain('mutants');
