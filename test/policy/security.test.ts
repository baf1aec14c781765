/** docs/limits.md lists every limit: each row has all its cells, and names tests that exist. */
import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';

const root = new URL('../..', import.meta.url);
const text = readFileSync(new URL('docs/limits.md', root), 'utf8');

const GROUPS = ['Base station', 'Device', 'Client and gateway'];
const HEADER = ['Limit, default (setting)', 'Who can fill it', 'What the next honest user gets', 'Freed when', 'Test'];

interface Row {
  readonly group: string;
  readonly cells: readonly string[];
}

/** Returns the lines under a heading of second depth, up to the next one. */
function section(heading: string): string[] {
  const lines = text.split('\n');
  const rest = lines.slice(lines.indexOf(`## ${heading}`) + 1);
  const end = rest.findIndex((line) => line.startsWith('## '));
  return rest.slice(0, end < 0 ? rest.length : end);
}

/** Returns the cells of each line of a table; there are no bars inside code. */
const cellsOf = (line: string): string[] =>
  line
    .slice(1, -1)
    .split('|')
    .map((cell) => cell.trim());

const tables = GROUPS.map((group) => ({ group, lines: section(group).filter((line) => line.startsWith('|')) }));
const rows: Row[] = tables.flatMap(({ group, lines }) => lines.slice(2).map((line) => ({ group, cells: cellsOf(line) })));
const named = (cell: string): string[] => [...cell.matchAll(/`([^`]+)`/g)].map(([, path]) => path as string);

describe('the limits in docs/limits.md', () => {
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
