/** `npm run limits`: writes docs/limits.md again. The code is TypeScript, which is bundled first: document.ts. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { bundled, root } from '../support/bundle.mjs';

const { limitsDocument } = await import(pathToFileURL(await bundled('limits', 'document')).href);
writeFileSync(join(root, 'docs/limits.md'), limitsDocument());
