/**
 * The list of mutants: one JSON file per layer in this folder. This module reads it, checks it against the sources, and
 * selects a part of it.
 *
 * A mutant is one small, wrong change of one source file, with the test files that must notice it.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Layers, one JSON file each, in the order of the run. */
export const LAYERS = ['core-as', 'bindings', 'protocol', 'platform', 'runtime', 'testing', 'server', 'device', 'client', 'cli'] as const;

/** Limit on mutants of the core: each needs its own build. */
export const MAX_CORE_MUTANTS = 47;

export interface Mutant {
  /** Source file, relative to the root. */
  readonly file: string;
  /** Occurs exactly once in the file. */
  readonly search: string;
  readonly replace: string;
  /** Test files, relative to the root; one of them must fail. */
  readonly tests: readonly string[];
  /** Given for an equivalent mutant: why no test can notice the change. */
  readonly reason?: string;
}

/** Returns all mutants, layer by layer. Throws a TypeError that names layer and entry when an entry is malformed. */
export function readMutants(root: string): Mutant[] {
  return LAYERS.flatMap((layer) => {
    const entries: unknown = JSON.parse(readFileSync(join(root, `test/mutants/${layer}.json`), 'utf8'));
    if (!Array.isArray(entries)) throw new TypeError(`${layer}.json is not an array`);
    return entries.map((entry, index) => parseMutant(entry, layer, `${layer}.json, entry ${index}`));
  });
}

/** Parses `entry` as a mutant of `layer`. Throws a TypeError that begins with `place`. */
export function parseMutant(entry: unknown, layer: string, place: string): Mutant {
  const { file, search, replace, tests, reason, ...others } = Object(entry) as Record<string, unknown>;
  for (const key of Object.keys(others)) throw new TypeError(`${place}: unknown key ${key}`);
  if (typeof file !== 'string' || !file.startsWith(`${layer}/`)) throw new TypeError(`${place}: the file is not in ${layer}/`);
  if (typeof search !== 'string' || typeof replace !== 'string' || search === replace || search === '')
    throw new TypeError(`${place}: search and replace must be different texts`);
  if (!Array.isArray(tests) || tests.length === 0 || !tests.every((test) => /^test\/.+\.test\.ts$/.test(test)))
    throw new TypeError(`${place}: tests must name test files`);
  if (reason !== undefined && (typeof reason !== 'string' || reason === '')) throw new TypeError(`${place}: the reason is not a text`);
  return { file, search, replace, tests, ...(reason === undefined ? {} : { reason }) };
}

/**
 * Returns what is wrong with the list: search texts that do not match exactly once, missing test files, duplicates, too
 * many mutants of the core.
 */
export function faults(mutants: readonly Mutant[], root: string): string[] {
  const found: string[] = [];
  const seen = new Set<string>();
  for (const mutant of mutants) {
    const { file, search, replace, tests } = mutant;
    const count = existsSync(join(root, file)) ? occurrences(readFileSync(join(root, file), 'utf8'), search) : 0;
    if (count !== 1) found.push(`${describe(mutant)}: the search text occurs ${count} times`);
    for (const test of tests) if (!existsSync(join(root, test))) found.push(`${describe(mutant)}: ${test} does not exist`);
    const identity = JSON.stringify([file, search, replace]);
    if (seen.has(identity)) found.push(`${describe(mutant)}: listed twice`);
    seen.add(identity);
  }
  const core = mutants.filter(isCore).length;
  if (core > MAX_CORE_MUTANTS) found.push(`${core} mutants of the core, at most ${MAX_CORE_MUTANTS} fit the time`);
  return found;
}

/** Selects every n-th mutant, so that each part has its share of every layer. @param part 1 to `of` */
export function partOf(mutants: readonly Mutant[], part: number, of: number): Mutant[] {
  return mutants.filter((_, index) => index % of === part - 1);
}

/**
 * Returns the mutants whose source or tests are among the `changed` files, and those of `part`, by turns, so that a
 * budget leaves time for both.
 */
export function touchedAnd(all: readonly Mutant[], part: readonly Mutant[], changed: readonly string[]): Mutant[] {
  const files = new Set(changed);
  const touched = all.filter(({ file, tests }) => [file, ...tests].some((each) => files.has(each)));
  const turns = Array.from({ length: Math.max(touched.length, part.length) }, (_, index) => [touched[index], part[index]]);
  return [...new Set(turns.flat())].filter((mutant) => mutant !== undefined);
}

/** Returns whether the mutant needs a build of the wasm module. */
export function isCore({ file }: Mutant): boolean {
  return file.startsWith('core-as/');
}

/** Returns `source` with the mutation. */
export function mutated(source: string, { search, replace }: Mutant): string {
  // A function, since $ has a meaning in a replacement string.
  return source.replace(search, () => replace);
}

/** Describes the mutant in one line. */
export function describe({ file, search, replace }: Mutant): string {
  return `${file}: ${shown(search)} → ${shown(replace)}`;
}

function shown(text: string): string {
  return text === '' ? 'nothing' : `\`${text.replaceAll(/\s+/g, ' ').trim()}\``;
}

function occurrences(text: string, search: string): number {
  return text.split(search).length - 1;
}
