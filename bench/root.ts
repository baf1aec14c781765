/** Where the project lies: the benches run from `dist/bench`, the lab takes the same modules as they are. */
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const ROOT = ['../', '../../'].map((up) => new URL(up, import.meta.url)).find((folder) => existsSync(new URL('package.json', folder)));

/** Absolute path of a file of the project. */
export function fromRoot(path: string): string {
  return fileURLToPath(new URL(path, ROOT));
}

/** Path of a compiled bench process. @param name of a script in `bench/processes/`, without extension */
export function processScript(name: string): string {
  return fromRoot(`dist/bench/processes/${name}.js`);
}
