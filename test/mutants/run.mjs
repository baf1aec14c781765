/**
 * `npm run test:mutants -- [--part k/n] [--only text] [--jobs N] [--json]`: bundles the runner, which is TypeScript,
 * and runs it with this Node. test/mutants/main.ts says what it does and prints.
 */
import { runMain } from '../support/bundle.mjs';

await runMain('mutants');
