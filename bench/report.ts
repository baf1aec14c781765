/**
 * The report of a bench, as a table or as one JSON document: rows of medians, with minimum and maximum.
 *
 * A ratio is always ours ÷ peer. A large ratio is good where more is better, a small one where less is better.
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
  /** Duration by percentile, ms, where `ours` is a share of successes; Infinity for a failure. */
  readonly times?: Readonly<Record<TimeFigure, number>>;
}

export type TimeFigure = 'p50' | 'p95' | 'p99' | 'max';

/** A ratio to reach, shown beside its row. */
export interface Goal {
  readonly case: string;
  /** Peer of the ratio; without one the goal is about our own value. */
  readonly peer?: string;
  /** The goal is about this figure of `times`. */
  readonly time?: TimeFigure;
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

/** Figures of `times` that a table shows. */
const SHOWN_TIMES: readonly TimeFigure[] = ['p50', 'p95'];
/** More peers than this are shown one below the other. */
const PEERS_ABREAST = 3;

/** Returns median, minimum and maximum of at least one value. */
export function spread(values: readonly number[]): Spread {
  const sorted = [...values].sort((a, b) => a - b);
  const [min, median, max] = [sorted[0], sorted[sorted.length >> 1], sorted.at(-1)];
  if (min === undefined || median === undefined || max === undefined) throw new Error('a bench measured nothing');
  return { median, min, max };
}

/** Returns the value below which `percent` of the values lie; NaN without any. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor((sorted.length * percent) / 100))] ?? Number.NaN;
}

/** Returns the JSON document of `--json`. */
export function document(report: Report): string {
  const rows = report.rows.map((row) => ({
    case: row.case,
    unit: row.unit,
    better: row.better,
    ours: significant(row.ours.median),
    peers: map(row.peers, ({ median }) => significant(median)),
    ratio: map(row.peers, ({ median }) => significant(row.ours.median / median)),
    range: { ours: range(row.ours), ...map(row.peers, range) },
    // JSON has no Infinity: a figure of a failure is null.
    ...(row.times && map(row.times, significant)),
  }));
  const goals = report.goals.map((goal) => {
    const value = reachedValue(goal, report.rows);
    return { ...goal, ...(value === null ? { reached: null } : { value: significant(value), reached: isReached(goal, value) }) };
  });
  return JSON.stringify(
    { bench: report.bench, node: process.version, cpu: cpu(), rows, goals, ...(report.absent && { absent: report.absent }) },
    null,
    2,
  );
}

/**
 * Returns a table for a person, with each goal beside its row. A few peers stand side by side, many one below the
 * other.
 */
export function table(report: Report): string {
  const { rows, absent = {} } = report;
  const peers = [...new Set(rows.flatMap((row) => Object.keys(row.peers)))];
  const missing = Object.entries(absent).map(([peer, reason]) => `(every case)  ${peer}: not measured: ${reason}`);
  const unmeasured = report.goals.filter((goal) => reachedValue(goal, rows) === null).map((goal) => `goal: ${wanted(goal)}: not measured`);
  return [
    `${report.bench}: ${report.about}`,
    `Medians (min … max); ratio = ours ÷ peer. Node ${process.version}, ${cpu()}`,
    '',
    ...columns(peers.length <= PEERS_ABREAST ? abreast(report, peers) : below(report)),
    ...missing,
    ...unmeasured,
  ].join('\n');
}

function abreast({ rows, goals }: Report, peers: readonly string[]): string[][] {
  const figures = rows.some(({ times }) => times !== undefined) ? SHOWN_TIMES : [];
  const lines = rows.map((row) => [
    row.case,
    row.unit,
    better(row),
    shown(row.ours),
    ...figures.map((figure) => time(row, figure)),
    ...peers.flatMap((peer) => {
      const other = row.peers[peer];
      return other ? [shown(other), ratio(row, other)] : ['–', '–'];
    }),
    goals
      .filter((goal) => goal.case === row.case && reachedValue(goal, rows) !== null)
      .map((goal) => verdict(goal, rows))
      .join('; '),
  ]);
  return [['case', 'unit', 'better', 'ours', ...figures, ...peers.flatMap((peer) => [peer, 'ratio']), 'goal'], ...lines];
}

function below({ rows, goals }: Report): string[][] {
  const goalOf = (row: Row, peer?: string): string => {
    const goal = goals.find((each) => each.case === row.case && each.peer === peer);
    return goal === undefined ? '' : verdict(goal, rows);
  };
  const lines = rows.flatMap((row) => [
    [row.case, 'ours', row.unit, better(row), shown(row.ours), '', goalOf(row)],
    ...Object.entries(row.peers).map(([peer, other]) => ['', peer, row.unit, '', shown(other), ratio(row, other), goalOf(row, peer)]),
  ]);
  return [['case', '', 'unit', 'better', 'median', 'ratio', 'goal'], ...lines];
}

function time({ times }: Row, figure: TimeFigure): string {
  const value = times?.[figure] ?? Number.POSITIVE_INFINITY;
  return value === Number.POSITIVE_INFINITY ? '–' : `${number(value)} ms`;
}

function better(row: Row): string {
  return row.better === 'lower' ? 'less' : 'more';
}

function ratio(row: Row, other: Spread): string {
  return `${number(row.ours.median / other.median)} ×`;
}

/** Returns the value that a goal is about: a ratio, or our own value; null when it was not measured. */
function reachedValue({ case: name, peer, time }: Goal, rows: readonly Row[]): number | null {
  const row = rows.find((candidate) => candidate.case === name);
  if (row === undefined) return null;
  if (time !== undefined) return row.times?.[time] ?? null;
  if (peer === undefined) return row.ours.median;
  const other = row.peers[peer];
  return other === undefined ? null : row.ours.median / other.median;
}

function isReached({ atLeast, atMost }: Goal, value: number): boolean {
  return (atLeast === undefined || value >= atLeast) && (atMost === undefined || value <= atMost);
}

function wanted(goal: Goal): string {
  const { case: name, peer } = goal;
  const limit = limitOf(goal);
  return peer === undefined ? `${name} ${limit}` : `${name} ${limit} × ${peer}`;
}

/** Returns the text of a goal beside its row. */
function verdict(goal: Goal, rows: readonly Row[]): string {
  const { peer } = goal;
  const value = reachedValue(goal, rows);
  const limit = limitOf(goal);
  const reached = value === null ? 'not measured' : isReached(goal, value) ? 'reached' : 'MISSED';
  return `${limit}${peer === undefined ? '' : ` × ${peer}`} ${reached}`;
}

function limitOf({ time, atLeast, atMost }: Goal): string {
  const limit = atLeast !== undefined ? `≥ ${atLeast}` : `≤ ${atMost}`;
  return time === undefined ? limit : `${time} ${limit}`;
}

/** Aligns the first two columns and the last to the left, all others to the right. */
function columns(lines: readonly (readonly string[])[]): string[] {
  const widths = (lines[0] ?? []).map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  return lines.map((line) =>
    line
      .map((cell, column) => {
        const isLeft = column < 2 || column === line.length - 1;
        return isLeft ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0);
      })
      .join('  ')
      .trimEnd(),
  );
}

function shown({ median, min, max }: Spread): string {
  return min === max ? number(median) : `${number(median)} (${number(min)} … ${number(max)})`;
}

/** Formats a value with three digits, or with separators of thousands. */
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
