/** Tables for a person to read: a line of headings, and a line for each entry, in columns. */

/** An empty cell. */
const NOTHING = '-';

/** Widest cell that widens its column: cells may come from the peer, and each row is padded to the longest. */
const MAX_WIDTH = 256;

/**
 * Lines of a table; each column as wide as its longest cell, or 256 characters.
 * @param headings of the columns
 * @param rows cells in that order; empty or undefined ones are shown as `-`
 * @param right columns of numbers, from 0
 */
export function table(
  headings: readonly string[],
  rows: readonly (readonly (string | undefined)[])[],
  right: readonly number[] = [],
): string[] {
  const cells = [
    headings.map((heading) => heading.toUpperCase()),
    ...rows.map((row) => headings.map((_, column) => row[column] || NOTHING)),
  ];
  const widths = headings.map((_, column) =>
    Math.min(
      MAX_WIDTH,
      cells.reduce((most, row) => Math.max(most, lengthOf(row[column]!)), 0),
    ),
  );
  return cells.map((row) =>
    row
      .map((cell, column) => {
        const blanks = ' '.repeat(Math.max(0, widths[column]! - lengthOf(cell)));
        return right.includes(column) ? blanks + cell : cell + blanks;
      })
      .join('  ')
      .trimEnd(),
  );
}

/** Characters, not units of UTF-16. */
function lengthOf(cell: string): number {
  return [...cell].length;
}
