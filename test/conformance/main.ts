/**
 * Prints every name of the specification with its state, the symbol that implements it and the test that uses it, then
 * a summary by surface.
 *
 * With `--json`:
 * `{"rows": [{"section", "surface", "group", "kind", "name", "symbol", "test", "where", "path", "state", …}]}`. The
 * state is `done`, `alias`, `not applicable` or `missing`, with a `reason` for all but `done`, and `known` where a
 * missing row is listed as such. Exit code 1 when a row is missing without being listed as such. With `--prove`: see
 * prove/main.ts.
 */
import { checkConformance, missingRows, type Row, STATES } from './check.ts';
import { proveRows } from './prove/main.ts';

export async function main(root: string, args: string[]): Promise<number> {
  const rows = await checkConformance(root);
  if (args.includes('--prove')) return proveRows(root, rows, args);
  process.stdout.write(args.includes('--json') ? `${JSON.stringify({ rows }, null, 2)}\n` : report(rows));
  return missingRows(rows).length === 0 ? 0 : 1;
}

function report(rows: readonly Row[]): string {
  const lines: string[] = [];
  let heading = '';
  for (const row of rows) {
    const own = `§${row.section} ${row.surface}, ${row.group}`;
    if (own !== heading) lines.push('', own);
    heading = own;
    lines.push(line(row));
  }
  lines.push('', ...summary(rows), '');
  return lines.join('\n');
}

function line({ state, name, symbol, test, reason, known }: Row): string {
  const by = [symbol, test].filter((text) => text !== '').join('  ');
  const shown = known === true ? 'missing, known' : state;
  return `  ${shown.padEnd(14)}  ${name}  ${reason === undefined ? by : [reason, by].filter((text) => text !== '').join(': ')}`;
}

/** A table of the states by surface. */
function summary(rows: readonly Row[]): string[] {
  const counts = (own: readonly Row[]): number[] => [own.length, ...STATES.map((each) => own.filter(({ state }) => state === each).length)];
  const surfaces = [...new Set(rows.map(({ surface }) => surface))];
  const table: [string, (string | number)[]][] = [
    ['surface', ['rows', ...STATES]],
    ...surfaces.map((surface): [string, number[]] => [surface, counts(rows.filter((row) => row.surface === surface))]),
    ['all', counts(rows)],
  ];
  const missing = missingRows(rows).length;
  return [
    ...table.map(([name, cells]) => [name.padEnd(12), ...cells.map((cell) => String(cell).padStart(15))].join('')),
    `${missing} rows are missing and not listed as missing`,
  ];
}
