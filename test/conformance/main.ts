/**
 * Prints every name of the specification with the symbol that implements it and the test that uses it.
 *
 * With `--json`: `{"rows": [{"section", "surface", "group", "kind", "name", "symbol", "test", "state": "done"|"missing", …}]}`, with `construct`
 * where the language does the job and `reason` where something is missing. Exit code 1 when a row of §4.2, §8 or of the device SDK is missing.
 */
import { checkConformance, missingRows, type Row } from './check.ts';

export async function main(root: string, args: readonly string[]): Promise<number> {
  const rows = await checkConformance(root);
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
  const missing = rows.filter(({ state }) => state === 'missing').length;
  lines.push('', `${rows.length} rows, ${missing} missing, ${missingRows(rows).length} of them of §4.2, §8 or the device SDK`);
  return `${lines.join('\n')}\n`;
}

function line({ state, name, symbol, construct, test, reason }: Row): string {
  const by = [symbol, construct === undefined ? '' : `(${construct})`, test].filter((text) => text !== '').join('  ');
  return `  ${state.padEnd(7)}  ${name}  ${reason === undefined ? by : [reason, by].filter((text) => text !== '').join(': ')}`;
}
