/** Reads the repository's source files and what each of them imports. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Root of the repository. */
export const root = fileURLToPath(new URL('../..', import.meta.url));

/** File of a folder → files of that folder that it imports. Paths are relative to the repository. */
export type ImportGraph = ReadonlyMap<string, readonly string[]>;

/** Lists all `.ts` files below a folder, declarations and generated ones included. */
export function sources(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => relative(root, join(entry.parentPath ?? entry.path, entry.name)));
}

/** Reads the text of a file. */
export function textOf(file: string): string {
  return readFileSync(join(root, file), 'utf8');
}

/** Returns the specifiers that a file imports or exports from, as written. */
export function imports(file: string): string[] {
  const text = textOf(file)
    .replace(/\/\*[\s\S]*?\*\//g, '')
    .replace(/(^|[^:'"`])\/\/.*$/gm, '$1');
  const pattern =
    /(?:^|[\n;}])\s*(?:import|export)\b[^'";]*?from\s*['"]([^'"]+)['"]|(?:^|[\n;}])\s*import\s*['"]([^'"]+)['"]|\bimport\(\s*['"`]([^'"`$]+)['"`]/g;
  return [...text.matchAll(pattern)].map((match) => (match[1] ?? match[2] ?? match[3]) as string);
}

/** Returns the source without comments and string contents, so that prose may name what code may not. */
export function stripped(file: string): string {
  return textOf(file)
    .replace(/\/\*[\s\S]*?\*\//g, (comment) => comment.replace(/[^\n]/g, ' '))
    .replace(/(^|[^:'"`])\/\/.*$/gm, '$1')
    .replace(/'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"/g, "''")
    .replace(
      /`(?:[^`\\]|\\[\s\S])*`/g,
      (text) => `(${[...text.matchAll(/\$\{([^}]*)\}/g)].map(([, code]) => code).join(';')}${'\n'.repeat(text.split('\n').length - 1)})`,
    );
}

/** Resolves a relative import to a path; null for a package. */
export function targetOf(file: string, specifier: string): string | null {
  return specifier.startsWith('.') ? normalize(join(dirname(file), specifier)) : null;
}

/**
 * Returns the imports between the files of a top folder. AssemblyScript leaves out the suffix, and `/index` of a
 * folder.
 */
export function importGraph(folder: string): ImportGraph {
  const files = new Set(sources(folder));
  const resolve = (path: string) => [path, `${path}.ts`, `${path}/index.ts`].find((candidate) => files.has(candidate));
  const within = (file: string) =>
    imports(file).flatMap((specifier) => {
      const target = targetOf(file, specifier);
      if (target === null || !target.startsWith(`${folder}/`)) return [];
      const found = resolve(target);
      if (found === undefined) throw new Error(`${file} imports ${specifier}, which is no file of ${folder}/`);
      return [found];
    });
  return new Map([...files].map((file) => [file, within(file)]));
}
