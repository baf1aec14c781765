/**
 * The table at the end of a lab run: rows are figures, contenders stand side by side, and each row ends with our goal
 * and the verdict. Figures arrive through a file, one JSON document a line, since each test file is a process of its
 * own.
 */
import { readFileSync, writeFileSync } from 'node:fs';

/** Lower or upper bound. */
export interface Goal {
  readonly atLeast?: number;
  readonly atMost?: number;
}

export interface Figure extends Goal {
  /** Name of the figure, with its unit. */
  readonly row: string;
  readonly contender: string;
  readonly value: number;
}

/** A peer that could not be measured. */
export interface Absence {
  readonly absent: string;
  readonly reason: string;
}

/** Starts a run, whose tests find the file by `SVC_LAB_REPORT`. */
export function beginReport(file: string): void {
  writeFileSync(file, '');
  process.env.SVC_LAB_REPORT = file;
}

/** The table of a run; empty when nothing was measured. */
export function report(file: string): string {
  const lines = readFileSync(file, 'utf8').split('\n').filter(Boolean);
  const notes = lines.map((line) => JSON.parse(line) as Figure | Absence);
  const figures = notes.filter((each): each is Figure => 'row' in each);
  if (figures.length === 0) return '';
  const contenders = [...new Set(figures.map(({ contender }) => contender))];
  const rows = [...new Set(figures.map(({ row }) => row))].map((row) => {
    const ofRow = figures.filter((figure) => figure.row === row);
    const cells = contenders.map((contender) => shown(ofRow.find((figure) => figure.contender === contender)?.value));
    return [row, ...cells, verdict(ofRow)];
  });
  const absences = new Map(notes.filter((each): each is Absence => 'absent' in each).map(({ absent, reason }) => [absent, reason]));
  const missing = [...absences].map(([absent, reason]) => `${absent}: not measured: ${reason}`);
  return [
    'the lab at 100 Mbit/s and 50 ms round trip unless said',
    ...aligned([['', ...contenders, 'goal'], ...rows]),
    ...missing,
    '',
  ].join('\n');
}

function shown(value: number | undefined): string {
  if (value === undefined) return '–';
  return value.toFixed(value < 10 ? 2 : value < 1000 ? 1 : 0);
}

/** The goal, and whether it was reached. */
function verdict(figures: readonly Figure[]): string {
  return figures
    .filter(({ atLeast, atMost }) => atLeast !== undefined || atMost !== undefined)
    .map(({ contender, value, atLeast, atMost }) => {
      const wanted = [atLeast === undefined ? [] : `≥ ${shown(atLeast)}`, atMost === undefined ? [] : `≤ ${shown(atMost)}`]
        .flat()
        .join(', ');
      const reached = value >= (atLeast ?? Number.NEGATIVE_INFINITY) && value <= (atMost ?? Number.POSITIVE_INFINITY);
      return `${contender === 'ours' ? '' : `${contender} `}${wanted} ${reached ? 'reached' : 'NOT reached'}`;
    })
    .join('; ');
}

/** The first column left-aligned, the last unchanged, the others right-aligned. */
function aligned(lines: readonly (readonly string[])[]): string[] {
  const widths = (lines[0] as readonly string[]).map((_, column) => Math.max(...lines.map((line) => (line[column] as string).length)));
  return lines.map((line) =>
    line
      .map((cell, column) => {
        if (column === 0) return cell.padEnd(widths[0] as number);
        return column === line.length - 1 ? cell : cell.padStart(widths[column] as number);
      })
      .join('  ')
      .trimEnd(),
  );
}
