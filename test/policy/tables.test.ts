/** The tables of Markdown have a header, a delimiter row, and as many cells in every row: else none is rendered. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { root, textOf } from './imports.ts';

const files = [
  ...readdirSync(root).filter((name) => name.endsWith('.md')),
  ...['docs', 'bench', 'test'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && entry.name.endsWith('.md') && !entry.parentPath.includes('node_modules'))
      .map((entry) => join(entry.parentPath, entry.name).slice(root.length)),
  ),
];

/** Returns the faults of a page's tables, by line. A `|` inside a cell is escaped, even in a code span (GFM §4.10). */
function faults(source: string): string[] {
  const found: string[] = [];
  let isCode = false;
  let table: number[] = [];
  for (const [index, text] of source.split('\n').entries()) {
    if (/^\s*```/.test(text)) isCode = !isCode;
    const isRow = !isCode && /^ {0,3}\|/.test(text);
    if (!isRow) {
      if (table.length === 1) found.push(`${index}: a table without a delimiter row`);
      table = [];
      continue;
    }
    const cells = text.trim().split(/(?<!\\)\|/).length;
    if (table.length === 1 && !/^\s*\|(?:\s*:?-+:?\s*\|)+\s*$/.test(text)) found.push(`${index + 1}: not a delimiter row`);
    if (table.length > 0 && cells !== table[0]) found.push(`${index + 1}: ${cells - 2} cells, not ${(table[0] ?? 0) - 2}`);
    table.push(cells);
  }
  return found;
}

it('are tables for the renderer', () => {
  expect(files.length).toBeGreaterThan(25);
  expect(files.flatMap((file) => faults(`${textOf(file)}\n`).map((fault) => `${file}:${fault}`))).toEqual([]);
});

it.each([
  ['reflowed into one line', '| a | b | |---|---| | 1 | 2 |\n', ['1: a table without a delimiter row']],
  ['without a delimiter row', '| a | b |\n| 1 | 2 |\n', ['2: not a delimiter row']],
  ['with a pipe in a code span', '| a |\n|---|\n| `x|y` |\n', ['3: 2 cells, not 1']],
])('are refused: %s', (_, source, expected) => {
  expect(faults(source)).toEqual(expected);
});

it('are accepted with an escaped pipe, and in code', () => {
  expect(faults('| a |\n|---|\n| `x\\|y` |\n\n```\n| no table\n```\n')).toEqual([]);
});
