/**
 * Records a run: each bench with `--json` in a separate process, one after the other, then the file in
 * `bench/results/` and the table in `bench/README.md`.
 *
 * A bench that fails does not end the run; the file states the reason. The recorder does not judge figures: a missed
 * goal is a figure like any other.
 */
import { spawn, spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { cpus, loadavg } from 'node:os';
import { benches } from './benches.ts';
import { type BenchDocument, fileOf, nameOf, profileOf, type Result, readResult, writeResult } from './results.ts';
import { tabledRun, withTable } from './results-table.ts';
import { fromRoot } from './root.ts';

const README = fromRoot('bench/README.md');
const RUN = fromRoot('dist/bench/run.js');

export interface RecordOptions {
  /** Name of the kind of machine. Default: made from the name of its processors. */
  readonly profile?: string;
  /** Options for those benches that have them. */
  readonly passed: { readonly peers?: string; readonly seeds?: string };
  /** The command of this run, for the file. */
  readonly command: string;
}

/** Runs the benches and writes their figures. @returns the file, and the benches that failed */
export async function record(
  names: readonly string[],
  { profile, passed, command }: RecordOptions,
  progress: (name: string) => void,
): Promise<{ file: string; failed: readonly string[] }> {
  const begun = { date: new Date().toISOString(), ...machine(profile), ...source(), command };
  const documents: Record<string, BenchDocument> = {};
  const failed: Record<string, string> = {};
  for (const name of names) {
    progress(name);
    const given = Object.entries(passed).filter(([option]) => (benches[name]!.takes as readonly string[]).includes(option));
    const { status, stdout, stderr } = await runBench(
      name,
      given.flatMap(([option, value]) => [`--${option}`, value]),
    );
    if (status === 0) documents[name] = JSON.parse(stdout) as BenchDocument;
    else failed[name] = reason(name, stderr, status);
  }
  const result: Result = { ...begun, benches: documents, failed };
  writeResult(result);
  show(nameOf(result));
  return { file: fileOf(nameOf(result)), failed: Object.keys(failed) };
}

/** Writes the table of the run `name` into `bench/README.md`; default: the run that is there. @returns its name */
export function show(name?: string): string {
  const readme = readFileSync(README, 'utf8');
  const shown = name ?? tabledRun(readme);
  writeFileSync(README, withTable(readme, readResult(shown)));
  return shown;
}

/** Returns the measured commit. */
function source(): Pick<Result, 'commit' | 'modified'> {
  const git = (...args: string[]): string | null => {
    const { status, stdout } = spawnSync('git', args, { cwd: fromRoot('.'), encoding: 'utf8' });
    return status === 0 ? stdout.trim() : null;
  };
  return { commit: git('rev-parse', 'HEAD'), modified: git('status', '--porcelain', '--untracked-files=no') !== '' };
}

function machine(profile?: string): Pick<Result, 'profile' | 'cpu' | 'platform' | 'node' | 'load'> {
  const all = cpus();
  const cpu = { model: all[0]?.model.trim() || 'unknown', cores: all.length };
  return {
    profile: profile ?? profileOf(cpu.model, cpu.cores),
    cpu,
    platform: `${process.platform} ${process.arch}`,
    node: process.version,
    load: Number((loadavg()[0] ?? 0).toFixed(1)),
  };
}

/** Runs a bench in a process that ends with this one. */
function runBench(name: string, passed: readonly string[]): Promise<{ status: number | null; stdout: string; stderr: string }> {
  const child = spawn(process.execPath, [RUN, name, '--json', ...passed], { stdio: ['ignore', 'pipe', 'pipe'] });
  const end = (): void => void child.kill();
  process.once('exit', end);
  const output = { stdout: '', stderr: '' };
  for (const stream of ['stdout', 'stderr'] as const) {
    child[stream].setEncoding('utf8').on('data', (text: string) => {
      output[stream] += text;
    });
  }
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (status) => {
      process.off('exit', end);
      resolve({ status, ...output });
    });
  });
}

/** Returns the last line that the bench printed. */
function reason(name: string, stderr: string, status: number | null): string {
  const last = stderr.trim().split('\n').at(-1) ?? '';
  return last.replace(`bench ${name}: `, '') || `it exited with ${status}`;
}
