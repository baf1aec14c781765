/**
 * The order of folders inside a top folder, as ARCHITECTURE.md gives it ("Inside the folders"), and what breaks it.
 *
 *     - `protocol/`: errors, path.ts → cbor → endpoint
 *       → index.ts
 *
 * An entry is a first-level folder with everything in it, or a file beside those folders. `,` separates the entries of
 * a rank, `→` the ranks, lowest first. An entry imports only entries of lower ranks. Every file counts, also
 * declarations, generated files and entry points for tests.
 */
import type { ImportGraph } from './imports.ts';

/** Ranks, lowest first. */
export type FolderOrder = readonly (readonly string[])[];

/**
 * Reads top folder → order from every line of the document that has the form above.
 * @throws Error when a folder has two lines
 */
export function foldersInOrder(document: string): ReadonlyMap<string, FolderOrder> {
  const orders = new Map<string, FolderOrder>();
  for (const [, folder, line] of document.matchAll(/^- `([\w-]+)\/`: (.*(?:\n {2}.*)*)$/gm)) {
    if (!line!.includes('→')) continue;
    if (orders.has(folder!)) throw new Error(`${folder}/ has two orders`);
    const ranks = line!.split('→').map((rank) => rank.split(',').map((entry) => entry.trim()));
    orders.set(folder!, ranks);
  }
  return orders;
}

/**
 * Returns what breaks the order of a top folder: entries named twice, not named or not existing, and imports that do
 * not lead downwards.
 */
export function breaches(folder: string, order: FolderOrder, graph: ImportGraph): string[] {
  const named = order.flat();
  const rankOf = new Map(order.flatMap((rank, index) => rank.map((entry) => [entry, index] as const)));
  const existing = new Set([...graph.keys()].map(entryOf));
  const arrows = [...graph].flatMap(([file, targets]) => targets.map((target) => ({ file, target })));
  const wrong = arrows.filter(({ file, target }) => {
    const [from, to] = [entryOf(file), entryOf(target)];
    return from !== to && !((rankOf.get(to) ?? Number.POSITIVE_INFINITY) < (rankOf.get(from) ?? Number.NEGATIVE_INFINITY));
  });
  return [
    ...named.filter((entry, index) => named.indexOf(entry) !== index).map((entry) => `${folder}/${entry} is named twice`),
    ...[...existing].filter((entry) => !rankOf.has(entry)).map((entry) => `${folder}/${entry} is not named`),
    ...[...rankOf.keys()].filter((entry) => !existing.has(entry)).map((entry) => `${folder}/${entry} does not exist`),
    ...wrong.map(({ file, target }) => `${file} → ${target}`),
  ];
}

/** Returns the circles of files: each set of files that reach one another, sorted and joined by ` ↔ `. */
export function circles(graph: ImportGraph): string[] {
  const reach = new Map([...graph.keys()].map((file) => [file, reachable(graph, file)]));
  const circleOf = (file: string) => [...reach.get(file)!].filter((other) => reach.get(other)!.has(file)).sort();
  const found = [...graph.keys()].map(circleOf).filter((circle) => circle.length > 0);
  return [...new Set(found.map((circle) => circle.join(' ↔ ')))];
}

/** Returns the files that a file imports, directly or through others; itself only if it is among them. */
function reachable(graph: ImportGraph, file: string): Set<string> {
  const seen = new Set<string>();
  const open = [...(graph.get(file) ?? [])];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (seen.has(next)) continue;
    seen.add(next);
    open.push(...(graph.get(next) ?? []));
  }
  return seen;
}

/** `protocol/coap/message.ts` → `coap`, `protocol/path.ts` → `path.ts`. */
function entryOf(file: string): string {
  return file.split('/')[1]!;
}
