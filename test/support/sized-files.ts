/** The test files that a long run makes longer: those that check for it, and all that import them. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';

/** How a file checks for a long run. */
const VARIABLE = 'SVC_TEST_LONG';

/** @param root of the repository @returns paths from there, sorted */
export function sizedFiles(root: string): string[] {
  const importers = new Map<string, string[]>();
  const reached = new Set<string>();
  const waiting: string[] = [];
  for (const file of readdirSync(join(root, 'test'), { recursive: true, encoding: 'utf8' })) {
    if (!file.endsWith('.ts')) continue;
    const path = join('test', file);
    const text = readFileSync(join(root, path), 'utf8');
    if (text.includes(VARIABLE)) waiting.push(path);
    for (const imported of importsOf(path, text)) importers.set(imported, [...(importers.get(imported) ?? []), path]);
  }
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    if (reached.has(path)) continue;
    reached.add(path);
    waiting.push(...(importers.get(path) ?? []));
  }
  return [...reached].filter((path) => path.endsWith('.test.ts')).sort();
}

function importsOf(path: string, text: string): string[] {
  return [...text.matchAll(/(?:from|import\() ?'(\.{1,2}\/[^']+)'/g)].map(([, relative = '']) => normalize(join(dirname(path), relative)));
}
