/**
 * A recorded run: the `--json` documents of several benches, with the facts to repeat them, as a file in
 * `bench/results/`.
 *
 * The name of a run is its date and the profile of its machine: `2026-11-26-amd-epyc-2`. A later run of the same day
 * and profile replaces the file.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import type { Goal } from './report.ts';
import { fromRoot } from './root.ts';

const FOLDER = fromRoot('bench/results/');
const EXTENSION = '.json';

/** The part of a bench's `--json` document that is used here. */
export interface BenchDocument {
  readonly bench: string;
  readonly rows: readonly { readonly case: string; readonly unit: string; readonly ours: number }[];
  /** `value` is absent and `reached` null where the peer of the goal was not measured. */
  readonly goals: readonly (Goal & { readonly value?: number; readonly reached: boolean | null })[];
  /** Peers that were not measured, with the reason. */
  readonly absent?: Readonly<Record<string, string>>;
}

export interface Result {
  /** When the run began, UTC, as ISO 8601. */
  readonly date: string;
  /** Names the kind of machine: lower-case letters, digits and hyphens. */
  readonly profile: string;
  readonly cpu: { readonly model: string; readonly cores: number };
  /** Operating system and architecture. */
  readonly platform: string;
  /** Version of Node. */
  readonly node: string;
  /** Load average of one minute when the run began: the machine's other work. */
  readonly load: number;
  /** The measured commit; null if git does not know it. */
  readonly commit: string | null;
  /** Whether files differed from that commit. */
  readonly modified: boolean;
  /** Command that repeats the run. */
  readonly command: string;
  readonly benches: Readonly<Record<string, BenchDocument>>;
  /** Benches that could not run, with the reason. */
  readonly failed: Readonly<Record<string, string>>;
}

export function isProfile(text: string): boolean {
  return /^[a-z0-9]+(?:-[a-z0-9]+)*$/.test(text) && text.length <= 60;
}

/** Returns a profile made from the name and number of the processors: `amd-epyc-2` for 2 × AMD EPYC. */
export function profileOf(model: string, cores: number): string {
  const words = model
    .toLowerCase()
    .replace(/\((?:r|tm)\)/g, '')
    .match(/[a-z0-9]+/g);
  return [...(words ?? ['unknown']), cores].join('-').slice(-60).replace(/^-/, '');
}

export function nameOf({ date, profile }: Pick<Result, 'date' | 'profile'>): string {
  return `${date.slice(0, 10)}-${profile}`;
}

/** Returns the path of a run's file within the project. */
export function fileOf(name: string): string {
  return `bench/results/${name}${EXTENSION}`;
}

/** Returns the names of all recorded runs, oldest day first. */
export function runNames(): string[] {
  if (!existsSync(FOLDER)) return [];
  return readdirSync(FOLDER)
    .filter((file) => file.endsWith(EXTENSION))
    .map((file) => file.slice(0, -EXTENSION.length))
    .sort();
}

/** Reads a recorded run. @throws Error if there is no such run, or its file holds another one */
export function readResult(name: string): Result {
  if (!runNames().includes(name)) throw new Error(`there is no run "${name}" in bench/results`);
  const result = JSON.parse(readFileSync(fromRoot(fileOf(name)), 'utf8')) as Result;
  if (nameOf(result) !== name) throw new Error(`${fileOf(name)} is the run ${nameOf(result)}`);
  return result;
}

/** Writes or replaces the file of a run, with each range on one line. */
export function writeResult(result: Result): void {
  const text = JSON.stringify(result, null, 2).replace(/\[\s+([^\s,]+),\s+([^\s,]+)\s+\]/g, '[$1, $2]');
  mkdirSync(FOLDER, { recursive: true });
  writeFileSync(fromRoot(fileOf(nameOf(result))), `${text}\n`);
}
