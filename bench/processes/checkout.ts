/** A bench process that may run the code of another checkout: the root of that checkout is its argument. */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

/** Loads a module of the build of the checkout. @param path below `dist` */
export function load<Module>(path: string): Promise<Module> {
  return import(pathToFileURL(join(process.argv[2]!, 'dist', path)).href);
}
