/**
 * `npm run vectors`: prints the appendix of PROTOCOL.md with test vectors. Its parts are TypeScript, which is bundled
 * first: test/vectors/generate.ts.
 */
import { pathToFileURL } from 'node:url';
import { bundled } from '../support/bundle.mjs';

const { appendix } = await import(pathToFileURL(await bundled('vectors', 'generate')).href);
process.stdout.write(await appendix());
