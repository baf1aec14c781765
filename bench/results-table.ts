/**
 * The table of a recorded run in `bench/README.md`: a row for each bench, with the goals that the run reached and
 * those that it missed.
 *
 * The table is between two comments, the first of which names the run. `npm run bench -- report` writes it; a test
 * compares it with the file of the run.
 */
import { type BenchDocument, nameOf, type Result } from './results.ts';

const BLOCK = /<!-- run (\S+) -->\n[\s\S]*?<!-- end of run -->/;
/** For a bench with more goals than this, the table has the number of reached goals, and lists the missed ones. */
const LISTED = 12;

type Goal = BenchDocument['goals'][number];

/** Returns the name of the run whose table is in `markdown`. @throws Error without such a table */
export function tabledRun(markdown: string): string {
  const name = BLOCK.exec(markdown)?.[1];
  if (name === undefined) throw new Error('bench/README.md has no comments "<!-- run … -->" and "<!-- end of run -->"');
  return name;
}

/** Returns `markdown` with its table replaced by that of `result`. */
export function withTable(markdown: string, result: Result): string {
  tabledRun(markdown);
  return markdown.replace(BLOCK, () => `<!-- run ${nameOf(result)} -->\n${resultTable(result)}\n<!-- end of run -->`);
}

/** Returns three lines about the run, and its table, as Markdown. */
export function resultTable(result: Result): string {
  const { benches, failed } = result;
  return [
    `Run [\`${nameOf(result)}\`](results/${nameOf(result)}.json)`,
    `by \`${result.command}\``,
    `on ${machine(result)}; ${commit(result)}.`,
    '',
    '| bench | reached | missed |',
    '|---|---|---|',
    ...Object.values(benches).map(row),
    ...Object.entries(failed).map(([name, reason]) => `| \`${name}\` | | did not run: ${oneLine(reason)} |`),
  ].join('\n');
}

function machine({ cpu, platform, node, load }: Result): string {
  return `${cpu.cores} × ${cpu.model}, ${platform}, Node ${node}, load ${load}`;
}

function commit({ commit, modified }: Result): string {
  if (commit === null) return 'commit unknown';
  return `commit ${commit.slice(0, 10)}${modified ? ' with changes' : ''}`;
}

function row(bench: BenchDocument): string {
  const reached = bench.goals.filter((goal) => goal.reached === true);
  const missed = bench.goals.filter((goal) => goal.reached !== true);
  const shown = bench.goals.length > LISTED ? `${reached.length} of ${bench.goals.length} goals` : list(bench, reached);
  return `| \`${bench.bench}\` | ${shown} | ${list(bench, missed)} |`.replaceAll('|  |', '| |');
}

function list(bench: BenchDocument, goals: readonly Goal[]): string {
  return goals.map((goal) => `\`${goal.case}\` ${figure(bench, goal)} (${limit(goal)})`).join('<br>');
}

/** Returns the value that a goal is about: a ratio to a peer, a time, or our own value. */
function figure({ rows }: BenchDocument, { case: name, peer, time, value }: Goal): string {
  if (value === undefined) return peer === undefined ? 'not measured' : `not measured beside ${peer}`;
  if (peer !== undefined) return `${number(value)} × ${peer}`;
  const unit = time === undefined ? (rows.find((each) => each.case === name)?.unit ?? '') : `ms ${time}`;
  return `${number(value)} ${unit}`;
}

function limit({ atLeast, atMost }: Goal): string {
  return atLeast === undefined ? `≤ ${atMost}` : `≥ ${atLeast}`;
}

/** Formats a value with three digits, or with separators of thousands. */
function number(value: number): string {
  return value >= 1000 ? Math.round(value).toLocaleString('en-US') : String(Number(value.toPrecision(3)));
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').replaceAll('|', '\\|').trim();
}
