/** Locates the project: the benches run from `dist/bench`, the lab imports the same modules from source. */
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const ROOT = ['../', '../../'].map((up) => new URL(up, import.meta.url)).find((folder) => existsSync(new URL('package.json', folder)));

/** Returns the absolute path of a project file. */
export function fromRoot(path: string): string {
  return fileURLToPath(new URL(path, ROOT));
}

/** Returns the path of a compiled bench process. @param name of a script in `bench/processes/`, without extension */
export function processScript(name: string): string {
  return fromRoot(`dist/bench/processes/${name}.js`);
}
