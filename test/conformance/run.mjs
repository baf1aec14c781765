/**
 * `npm run conformance [-- --json]`: bundles the check, whose parts are TypeScript, and runs it with this Node. Its
 * output: test/conformance/main.ts.
 */
import { runMain } from '../support/bundle.mjs';

await runMain('conformance');
