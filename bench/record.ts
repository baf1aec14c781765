/**
 * Records a run: each bench in a process of its own with `--json`, one after the other, then the file in
 * `bench/results/` and the table in `bench/README.md`.
 *
 * A bench that fails does not end the run: the file has its reason. It does not judge the figures: a missed goal is a
 * figure like any other.
 */
import { spawn, spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { cpus, loadavg } from 'node:os';
import { type BenchDocument, fileOf, nameOf, profileOf, type Result, readResult, writeResult } from './results.ts';
import { tabledRun, withTable } from './results-table.ts';
import { fromRoot } from './root.ts';

const README = fromRoot('bench/README.md');
const RUN = fromRoot('dist/bench/run.js');

export interface RecordOptions {
  /** Name of the kind of machine; without one it is made of what its processors are called. */
  readonly profile?: string;
  /** Options that each bench gets, such as `--peers none`. */
  readonly passed: readonly string[];
  /** Command that is being run, for the file. */
  readonly command: string;
}

/** Runs the benches and keeps their figures. @returns the file, and the benches that failed */
export async function record(
  names: readonly string[],
  { profile, passed, command }: RecordOptions,
  progress: (name: string) => void,
): Promise<{ file: string; failed: readonly string[] }> {
  const begun = { date: new Date().toISOString(), ...machine(profile), ...source(), command };
  const benches: Record<string, BenchDocument> = {};
  const failed: Record<string, string> = {};
  for (const name of names) {
    progress(name);
    const { status, stdout, stderr } = await runBench(name, passed);
    if (status === 0) benches[name] = JSON.parse(stdout) as BenchDocument;
    else failed[name] = reason(name, stderr, status);
  }
  const result: Result = { ...begun, benches, failed };
  writeResult(result);
  show(nameOf(result));
  return { file: fileOf(nameOf(result)), failed: Object.keys(failed) };
}

/** Writes the table of the run `name` into `bench/README.md`, else of the run that stands there. @returns its name */
export function show(name?: string): string {
  const readme = readFileSync(README, 'utf8');
  const shown = name ?? tabledRun(readme);
  writeFileSync(README, withTable(readme, readResult(shown)));
  return shown;
}

/** The commit that is measured. */
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

/** Ends with this process. */
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

/** What the bench said last. */
function reason(name: string, stderr: string, status: number | null): string {
  const last = stderr.trim().split('\n').at(-1) ?? '';
  return last.replace(`bench ${name}: `, '') || `it ended with ${status}`;
}
