/**
 * A Vite plugin that gives the worker access to a module's declarations: code at the module's end hands its classes and
 * functions to a hook of the worker, which may replace members or the declarations themselves. The code is the same for
 * every row, so each module is transformed once. It is part of the module's key in Vitest's cache: a run for other rows
 * opens other modules.
 */
import { join } from 'node:path';
import type { Plugin } from 'vitest/config';
import type { Place } from './sources.ts';

/** @param places whose modules are opened */
export function openModules(root: string, places: readonly Place[]): Plugin {
  const names = new Map<string, Set<string>>();
  for (const { file, name } of places) {
    const path = join(root, file);
    names.set(path, (names.get(path) ?? new Set()).add(name));
  }
  const added = (id: string, code: string): string | undefined => {
    const wanted = names.get(id.split('?')[0] ?? '');
    return wanted && opening(root, id, code, wanted);
  };
  return {
    name: 'open-modules',
    enforce: 'pre',
    configureVitest({ experimental_defineCacheKeyGenerator: defineKey }) {
      defineKey(({ id, sourceCode }) => added(id, sourceCode));
    },
    transform(code, id) {
      const end = added(id, code);
      return end && { code: `${code}\n${end}\n`, map: null };
    },
  };
}

/** Classes of the module that no row names are opened, too: they may extend one that is replaced. */
function opening(root: string, id: string, code: string, wanted: ReadonlySet<string>): string {
  const declared = [...code.matchAll(/^(?:export )?(?:abstract |async )*(class|function|const) (\w+)/gm)];
  const members = declared
    .filter(([, kind, name = '']) => kind === 'class' || wanted.has(name))
    .map(([, kind, name]) => {
      const set = kind === 'const' ? '' : `, set: (value) => { ${name} = value; }`;
      return `${name}: { get: () => ${name}${set} }`;
    });
  const file = id.split('?')[0]?.slice(root.length).replace(/^\//, '');
  return `globalThis.__openModule?.(${JSON.stringify(file)}, { ${members.join(', ')} });`;
}
