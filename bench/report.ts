/**
 * What a bench gives and how it is shown: rows of medians with the least and the most beside them, as a table or as one JSON document.
 *
 * A ratio is always ours ÷ peer: where more is better a large one is good, where less is better a small one.
 */
import { cpus } from 'node:os';

export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

export interface Row {
  readonly case: string;
  readonly unit: string;
  readonly better: 'higher' | 'lower';
  readonly ours: Spread;
  readonly peers: Readonly<Record<string, Spread>>;
}

/** A ratio the project wants to reach, shown below the table. */
export interface Goal {
  readonly case: string;
  /** Peer the ratio is taken to; without one the goal is about our own value. */
  readonly peer?: string;
  readonly atLeast?: number;
  readonly atMost?: number;
}

export interface Report {
  readonly bench: string;
  /** One sentence: what is measured. */
  readonly about: string;
  readonly rows: readonly Row[];
  readonly goals: readonly Goal[];
  /** Peers that could not be measured, with the reason. */
  readonly absent?: Readonly<Record<string, string>>;
}

/** More than these are shown one below the other. */
const PEERS_ABREAST = 3;

/** Median, least and most of at least one value. */
export function spread(values: readonly number[]): Spread {
  const sorted = [...values].sort((a, b) => a - b);
  const [min, median, max] = [sorted[0], sorted[sorted.length >> 1], sorted.at(-1)];
  if (min === undefined || median === undefined || max === undefined) throw new Error('a bench measured nothing');
  return { median, min, max };
}

/** The value below which `percent` of them lie; NaN without any. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor((sorted.length * percent) / 100))] ?? Number.NaN;
}

/** The one document of `--json`. */
export function document(report: Report): string {
  const rows = report.rows.map((row) => ({
    case: row.case,
    unit: row.unit,
    better: row.better,
    ours: significant(row.ours.median),
    peers: map(row.peers, ({ median }) => significant(median)),
    ratio: map(row.peers, ({ median }) => significant(row.ours.median / median)),
    range: { ours: range(row.ours), ...map(row.peers, range) },
  }));
  return JSON.stringify(
    { bench: report.bench, node: process.version, cpu: cpu(), rows, ...(report.absent && { absent: report.absent }) },
    null,
    2,
  );
}

/** A table for a person, with the goals below it. Many peers stand one below the other, a few beside each other. */
export function table(report: Report): string {
  const { rows, goals, absent = {} } = report;
  const peers = [...new Set(rows.flatMap((row) => Object.keys(row.peers)))];
  const missing = Object.entries(absent).map(([peer, reason]) => `${peer}: not measured: ${reason}`);
  return [
    `${report.bench}: ${report.about}`,
    `Medians (least … most); ratio = ours ÷ peer. Node ${process.version}, ${cpu()}`,
    '',
    ...columns(peers.length <= PEERS_ABREAST ? abreast(rows, peers) : below(rows)),
    ...missing,
    ...(goals.length > 0 ? ['', ...goals.map((goal) => verdict(goal, rows))] : []),
  ].join('\n');
}

function abreast(rows: readonly Row[], peers: readonly string[]): string[][] {
  const lines = rows.map((row) => [
    row.case,
    row.unit,
    better(row),
    shown(row.ours),
    ...peers.flatMap((peer) => {
      const other = row.peers[peer];
      return other ? [shown(other), ratio(row, other)] : ['–', '–'];
    }),
  ]);
  return [['case', 'unit', 'better', 'ours', ...peers.flatMap((peer) => [peer, 'ratio'])], ...lines];
}

function below(rows: readonly Row[]): string[][] {
  const lines = rows.flatMap((row) => [
    [row.case, 'ours', row.unit, better(row), shown(row.ours), ''],
    ...Object.entries(row.peers).map(([peer, other]) => ['', peer, row.unit, '', shown(other), ratio(row, other)]),
  ]);
  return [['case', '', 'unit', 'better', 'median', 'ratio'], ...lines];
}

function better(row: Row): string {
  return row.better === 'lower' ? 'less' : 'more';
}

function ratio(row: Row, other: Spread): string {
  return `${number(row.ours.median / other.median)} ×`;
}

function verdict(goal: Goal, rows: readonly Row[]): string {
  const row = rows.find((candidate) => candidate.case === goal.case);
  const other = goal.peer === undefined ? undefined : row?.peers[goal.peer];
  const wanted = goal.atLeast !== undefined ? `at least ${goal.atLeast}` : `at most ${goal.atMost}`;
  const what = goal.peer === undefined ? `${goal.case} ${wanted} ${row?.unit ?? ''}` : `${goal.case} ${wanted} × ${goal.peer}`;
  if (!row || (goal.peer !== undefined && !other)) return `goal: ${what}: not measured`;
  const value = other ? row.ours.median / other.median : row.ours.median;
  const reached = (goal.atLeast === undefined || value >= goal.atLeast) && (goal.atMost === undefined || value <= goal.atMost);
  return `goal: ${what}: ${reached ? 'reached' : 'NOT reached'} (${number(value)})`;
}

/** The first two columns to the left, all others to the right. */
function columns(lines: readonly (readonly string[])[]): string[] {
  const widths = (lines[0] ?? []).map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  return lines.map((line) =>
    line
      .map((cell, column) => (column < 2 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0)))
      .join('  ')
      .trimEnd(),
  );
}

function shown({ median, min, max }: Spread): string {
  return min === max ? number(median) : `${number(median)} (${number(min)} … ${number(max)})`;
}

/** Three digits, thousands apart. */
function number(value: number): string {
  return value >= 1000 ? Math.round(value).toLocaleString('en-US') : String(Number(value.toPrecision(3)));
}

function significant(value: number): number {
  return Number(value.toPrecision(4));
}

function range({ min, max }: Spread): [number, number] {
  return [significant(min), significant(max)];
}

function map<T, U>(record: Readonly<Record<string, T>>, change: (value: T) => U): Record<string, U> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, change(value)]));
}

function cpu(): string {
  const all = cpus();
  return `${all.length} × ${all[0]?.model.trim() || 'unknown'}`;
}
