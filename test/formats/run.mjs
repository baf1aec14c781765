/** `npm run formats`: writes test/formats/stored/ again. The code is TypeScript, which is bundled first: write.ts. */
import { rmSync } from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';

const path = (name) => fileURLToPath(new URL(name, import.meta.url));
const [entry, outfile, stored] = [path('write.ts'), path('../../build/formats/write.mjs'), path('stored')];
await build({ entryPoints: [entry], bundle: true, outfile, platform: 'node', format: 'esm', target: 'node20', packages: 'external' });
const { writeFormats } = await import(pathToFileURL(outfile).href);
rmSync(stored, { recursive: true, force: true });
await writeFormats(stored);
