/**
 * The table of a recorded run in `bench/README.md`: a row for each bench, with the goals that the run reached and
 * those that it missed.
 *
 * It stands between two comments, the first of which names the run. `npm run bench -- report` writes it; a test
 * compares it with the file of the run.
 */
import { type BenchDocument, nameOf, type Result } from './results.ts';

const BLOCK = /<!-- run (\S+) -->\n[\s\S]*?<!-- end of run -->/;
/** A bench with more goals than these has their number in the table, and those that were missed. */
const LISTED = 12;

type Goal = BenchDocument['goals'][number];

/** Name of the run whose table stands in `markdown`. @throws Error when there is no such table */
export function tabledRun(markdown: string): string {
  const name = BLOCK.exec(markdown)?.[1];
  if (name === undefined) throw new Error('bench/README.md has no comments "<!-- run … -->" and "<!-- end of run -->"');
  return name;
}

/** `markdown` with the table of `result` in place of the one it has. */
export function withTable(markdown: string, result: Result): string {
  tabledRun(markdown);
  return markdown.replace(BLOCK, () => `<!-- run ${nameOf(result)} -->\n${resultTable(result)}\n<!-- end of run -->`);
}

/** Three lines about the run, and its table, as Markdown. */
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

/** The value that the goal is about: a ratio to a peer, a time, or ours. */
function figure({ rows }: BenchDocument, { case: name, peer, time, value }: Goal): string {
  if (value === undefined) return peer === undefined ? 'not measured' : `not measured beside ${peer}`;
  if (peer !== undefined) return `${number(value)} × ${peer}`;
  const unit = time === undefined ? (rows.find((each) => each.case === name)?.unit ?? '') : `ms ${time}`;
  return `${number(value)} ${unit}`;
}

function limit({ atLeast, atMost }: Goal): string {
  return atLeast === undefined ? `≤ ${atMost}` : `≥ ${atLeast}`;
}

/** Three digits, thousands apart. */
function number(value: number): string {
  return value >= 1000 ? Math.round(value).toLocaleString('en-US') : String(Number(value.toPrecision(3)));
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').replaceAll('|', '\\|').trim();
}
