/**
 * `npm run vectors`: prints `docs/vectors.json`. Its parts are TypeScript, which is bundled first:
 * test/vectors/generate.ts.
 */
import { pathToFileURL } from 'node:url';
import { bundled } from '../support/bundle.mjs';

const { vectors } = await import(pathToFileURL(await bundled('vectors', 'generate')).href);
process.stdout.write(await vectors());
