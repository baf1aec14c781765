/**
 * Finds the source of a symbol: the file and its name there, through any re-exports of the module that the symbol
 * names.
 */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ENTRIES, partsOf } from '../symbols.ts';

/** A name in a source file, and the member of it, if any. */
export interface Place {
  /** Relative to the root, with its extension. */
  readonly file: string;
  readonly name: string;
  readonly member?: string;
  /** False for an interface or another type: there is nothing to replace at run time. */
  readonly isValue: boolean;
}

/** The place of a symbol, null when no source declares it. */
export function placeOf(root: string, symbol: string): Place | null {
  const parts = partsOf(symbol);
  if (parts === null) return null;
  const found = declarationOf(root, `${ENTRIES[parts.module] ?? parts.module}.ts`, parts.name);
  return found === null ? null : { ...found, ...(parts.member !== undefined && { member: parts.member }) };
}

function declarationOf(root: string, file: string, name: string): Place | null {
  if (!existsSync(join(root, file))) return null;
  const text = readFileSync(join(root, file), 'utf8').replace(/\/\*[\s\S]*?\*\//g, '');
  const declared = new RegExp(`^(?:export )?(?:abstract |async )*(class|function|const|interface|type) ${name}\\b`, 'm').exec(text);
  if (declared !== null) return { file, name, isValue: !['interface', 'type'].includes(declared[1] ?? '') };
  for (const [, names = '', from = ''] of text.matchAll(/export (?:type )?{([^}]*)} from '([^']+)'/g)) {
    const exported = names.split(',').map((each) => each.replace(/^\s*(?:type )?|\s+$/g, '').split(' as '));
    const match = exported.find((each) => each.at(-1) === name);
    if (match !== undefined) return declarationOf(root, join(dirname(file), from), match[0] ?? name);
  }
  for (const [, from = ''] of text.matchAll(/export \* from '([^']+)'/g)) {
    const found = declarationOf(root, join(dirname(file), from), name);
    if (found !== null) return found;
  }
  return null;
}
