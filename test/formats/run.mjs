/** `npm run formats`: writes test/formats/stored/ again. The code is TypeScript, which is bundled first: write.ts. */
import { rmSync } from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { bundled } from '../support/bundle.mjs';

const stored = fileURLToPath(new URL('stored', import.meta.url));
const { writeFormats } = await import(pathToFileURL(await bundled('formats', 'write')).href);
rmSync(stored, { recursive: true, force: true });
await writeFormats(stored);
