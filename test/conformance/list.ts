/**
 * The two lists that conformance is checked by, both kept by hand beside this file.
 *
 *   specification.json    every name of the specification: interface.md, with device events, device and client error codes, connection events
 *                         and mDNS actions from reference-behaviour.md §3, §4.1 and §4.4
 *   implementation.json   for each name the symbol that does its job, and a test that uses it; where the language does the job, the construct
 *
 * A name is written `surface: group: name`; `*` for the surface is every surface that has the group and the name.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface NameGroup {
  /** Of interface.md. */
  readonly section: string;
  readonly surface: string;
  readonly group: string;
  readonly kind: string;
  readonly names: readonly string[];
}

export interface Implementation {
  /** See symbols.ts. */
  readonly symbol: string;
  /** `file > title`. */
  readonly test: string;
  /** What of the language does the job, the symbol being what shows it. */
  readonly construct?: string;
  readonly names: readonly string[];
}

/** One name of the specification and what stands for it. */
export interface ListRow {
  readonly section: string;
  readonly surface: string;
  readonly group: string;
  readonly kind: string;
  readonly name: string;
  readonly implementation: Implementation | undefined;
}

export function readLists(root: string): { specification: NameGroup[]; implementations: Implementation[] } {
  const read = (name: string) => JSON.parse(readFileSync(join(root, 'test/conformance', name), 'utf8'));
  return { specification: read('specification.json'), implementations: read('implementation.json') };
}

/** Every name with its implementation, in the order of the specification. @throws Error for a name that is implemented twice, or is none */
export function listRows(specification: readonly NameGroup[], implementations: readonly Implementation[]): ListRow[] {
  const byName = new Map<string, Implementation>();
  for (const implementation of implementations) {
    for (const name of implementation.names) {
      if (byName.has(name)) throw new Error(`the list of implementations has ${JSON.stringify(name)} twice`);
      byName.set(name, implementation);
    }
  }
  const unused = new Set(byName.keys());
  const rows = specification.flatMap(({ names, ...group }) =>
    names.map((name): ListRow => {
      const found = [group.surface, '*'].map((surface) => `${surface}: ${group.group}: ${name}`).find((key) => byName.has(key)) ?? '';
      unused.delete(found);
      return { ...group, name, implementation: byName.get(found) };
    }),
  );
  if (unused.size > 0) throw new Error(`no name of the specification: ${[...unused].join(', ')}`);
  return rows;
}

/** What has to be there: every CoAP endpoint, every limit, and all of the device SDK. */
export function isRequired({ section, surface }: Pick<ListRow, 'section' | 'surface'>): boolean {
  return section === '4.2' || section === '8' || surface === 'c-device' || surface === 'device';
}
