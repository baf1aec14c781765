/**
 * The two lists that conformance is checked by, both kept by hand beside this file.
 *
 *   specification.json    every name of the specification, with device events, device and client error codes,
 *   connection events and mDNS actions
 *   implementation.json   the state of each name: the symbol that implements it with a test that fails without it, the
 *   symbol it is an alias of, why it does not apply here, or why it is missing for now
 *
 * A name is written `surface: group: name`; the surface `*` stands for every surface that has the group and the name.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** What a row stands for, and so how it is proved (prove/replacement.ts). */
export const KINDS = ['operation', 'event', 'error', 'option', 'field', 'endpoint', 'constant', 'limit', 'type'] as const;
export type Kind = (typeof KINDS)[number];

export interface NameGroup {
  /** Section of the specification. */
  readonly section: string;
  readonly surface: string;
  readonly group: string;
  readonly kind: Kind;
  readonly names: readonly string[];
}

/** Names that are done. */
export interface DoneEntry {
  /** See symbols.ts. */
  readonly symbol: string;
  /** `file > title`. */
  readonly test: string;
  /** Where it differs from the kind of the name: an operation elsewhere may be an option here. */
  readonly kind?: Kind;
  /**
   * Symbols. For an operation or a limit: the implementation of a member of an interface. For the others: the
   * operations that events, options, fields and endpoints pass through.
   */
  readonly where?: readonly string[];
  /** For a field inside a field: `list[].field`; for an option that an operation takes: its name. */
  readonly path?: string;
  readonly names: readonly string[];
}

/** Names that are not done: an alias of a symbol that is, not applicable in this language, or known to be missing. */
export interface OtherEntry {
  readonly state: 'alias' | 'not applicable' | 'missing';
  /** For an alias. */
  readonly symbol?: string;
  /** For an alias: `file > title` of a test that shows what the name stands for. None for `…Async`, see check.ts. */
  readonly test?: string;
  readonly reason: string;
  readonly names: readonly string[];
}

export type Entry = DoneEntry | OtherEntry;

/** One name of the specification and its entry. */
export interface ListRow {
  readonly section: string;
  readonly surface: string;
  readonly group: string;
  readonly kind: Kind;
  readonly name: string;
  readonly entry: Entry | undefined;
}

export function readLists(root: string): { specification: NameGroup[]; entries: Entry[] } {
  const read = (name: string) => JSON.parse(readFileSync(join(root, 'test/conformance', name), 'utf8'));
  return { specification: read('specification.json'), entries: read('implementation.json') };
}

export function isDone(entry: Entry): entry is DoneEntry {
  return !('state' in entry);
}

/**
 * Every name with its entry, in the order of the specification. @throws Error for a name that is listed twice or
 * unknown
 */
export function listRows(specification: readonly NameGroup[], entries: readonly Entry[]): ListRow[] {
  const byName = new Map<string, Entry>();
  for (const entry of entries) {
    for (const name of entry.names) {
      if (byName.has(name)) throw new Error(`the list of implementations has ${JSON.stringify(name)} twice`);
      byName.set(name, entry);
    }
  }
  const unused = new Set(byName.keys());
  const rows = specification.flatMap(({ names, ...group }) =>
    names.map((name): ListRow => {
      const found = [group.surface, '*'].map((surface) => `${surface}: ${group.group}: ${name}`).find((key) => byName.has(key)) ?? '';
      unused.delete(found);
      const entry = byName.get(found);
      const kind = entry !== undefined && isDone(entry) ? entry.kind : undefined;
      return { ...group, kind: kind ?? group.kind, name, entry };
    }),
  );
  if (unused.size > 0) throw new Error(`no name of the specification: ${[...unused].join(', ')}`);
  return rows;
}
