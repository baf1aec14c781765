/** A table for a person: a header and rows, in columns with two blanks between them. */

/** One line each, without blanks at the end. @param rows as many cells as the header @param right columns of numbers, from 0 */
export function columns(header: readonly string[], rows: readonly (readonly string[])[], right: readonly number[] = []): string[] {
  const all = [header, ...rows];
  const widths = header.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  const cell = (text: string, column: number): string =>
    right.includes(column) ? text.padStart(widths[column] ?? 0) : text.padEnd(widths[column] ?? 0);
  return all.map((row) => row.map(cell).join('  ').trimEnd());
}
