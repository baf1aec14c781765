/** SECURITY.md lists every limit: each row has all its cells, and names tests that exist. */
import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const root = new URL('../..', import.meta.url);
const text = readFileSync(new URL('SECURITY.md', root), 'utf8');

const GROUPS = ['Base station', 'Device', 'Client and gateway'];
const HEADER = ['Limit, default (setting)', 'Who can fill it', 'What the next honest user gets', 'Freed when', 'Test'];

interface Row {
  readonly group: string;
  readonly cells: readonly string[];
}

/** Returns the part of the document under a heading, up to the next heading of that depth or above. */
function section(under: string, depth: number, heading: string): string {
  const lines = under.split('\n');
  const begin = lines.indexOf(`${'#'.repeat(depth)} ${heading}`);
  if (begin < 0) return '';
  const rest = lines.slice(begin + 1);
  const end = rest.findIndex((line) => new RegExp(`^#{1,${depth}} `).test(line));
  return rest.slice(0, end < 0 ? rest.length : end).join('\n');
}

/** Returns the cells of each line of a table; there are no bars inside code. */
const cellsOf = (line: string): string[] =>
  line
    .slice(1, -1)
    .split('|')
    .map((cell) => cell.trim());

const limits = section(text, 2, 'Limits');
const tables = GROUPS.map((group) => ({
  group,
  lines: section(limits, 3, group)
    .split('\n')
    .filter((line) => line.startsWith('|')),
}));
const rows: Row[] = tables.flatMap(({ group, lines }) => lines.slice(2).map((line) => ({ group, cells: cellsOf(line) })));
const named = (cell: string): string[] => [...cell.matchAll(/`([^`]+)`/g)].map(([, path]) => path as string);

describe('the limits in SECURITY.md', () => {
  it.each(tables)('have a table: $group', ({ lines }) => {
    expect(cellsOf(lines[0] ?? '')).toEqual(HEADER);
    expect(lines.length).toBeGreaterThan(5);
  });

  it('have all cells in every row', () => {
    const incomplete = rows.filter(({ cells }) => cells.length !== HEADER.length || cells.includes(''));
    expect(incomplete).toEqual([]);
  });

  it('are each named once in a group', () => {
    const names = rows.map(({ group, cells }) => `${group}: ${cells[0]}`);
    expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
  });

  it('name tests that exist, in every row', () => {
    const wrong = rows.filter(({ cells }) => {
      const tests = named(cells[4] ?? '');
      return tests.length === 0 || tests.some((path) => !/^test\/.+\.test\.ts$/.test(path) || !existsSync(new URL(path, root)));
    });
    expect(wrong).toEqual([]);
  });
});
