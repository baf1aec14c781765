/**
 * Proves that a cited test needs the symbol it is cited for:
 *
 *   1. each test file runs once unchanged, its cited tests only; the worker records which calls of operations succeeded
 *   2. for each claim, the tests that used its symbol run again with the symbol replaced; at least one of them must
 *      fail
 *
 * A claim is not proved when its test fails unchanged, never uses the symbol with success, or passes without it, nor
 * when the replacement had no effect: then a failure says nothing.
 */
import type { Claim } from './claims.ts';
import { keyOf, type Proof } from './replace.ts';
import { type Replacement, replacementOf } from './replacement.ts';
import { exactly, namesOf, Runner, type TestResult } from './runner.ts';
import type { Place } from './sources.ts';

export interface Verdict {
  readonly claim: Claim;
  /** Why it is not proved; null when it is. */
  readonly obstacle: string | null;
  /** The failure of a test when the symbol was replaced. */
  readonly failure?: string;
}

/** ms that a test may take unchanged. */
const RECORDED_TIME = 60_000;
/**
 * ms that it may take with its symbol replaced, or this multiple of its earlier time: an endless wait is a failure,
 * too.
 */
const MIN_REPLACED_TIME = 15_000;
const SLOWER = 5;

type Planned = Claim & { readonly replacement: Replacement };

/**
 * @param onVerdict receives each claim as soon as it is decided
 * @param mayBegin asked before each claim: false ends the run
 */
export async function prove(
  root: string,
  claims: readonly Claim[],
  onVerdict: (verdict: Verdict) => void,
  mayBegin: () => boolean,
): Promise<void> {
  const planned: Planned[] = [];
  for (const claim of claims) {
    const replacement = replacementOf(root, claim.row);
    if (typeof replacement === 'string') onVerdict({ claim, obstacle: replacement });
    else planned.push({ ...claim, replacement });
  }
  if (planned.length === 0) return;
  const runner = await Runner.start(
    root,
    planned.flatMap(({ replacement }) => replacement.places),
  );
  try {
    for (const file of new Set(planned.map((claim) => claim.file))) {
      if (!mayBegin()) return;
      const own = planned.filter((claim) => claim.file === file);
      const recorded = await record(runner, file, own).catch(messageOf);
      for (const claim of own) {
        if (!mayBegin()) return;
        if (typeof recorded === 'string') onVerdict({ claim, obstacle: recorded });
        else onVerdict({ claim, ...(await verdict(runner, claim, recorded).catch((error) => ({ obstacle: messageOf(error) }))) });
      }
    }
  } finally {
    await runner.close();
  }
}

async function record(runner: Runner, file: string, claims: readonly Planned[]): Promise<TestResult[]> {
  const recorded = claims.flatMap(({ replacement }): readonly Place[] => (replacement.kind === 'call' ? replacement.places : []));
  const places = [...new Map(recorded.map((place) => [keyOf(place), place])).values()];
  const names = new RegExp([...new Set(claims.map(({ title }) => namesOf(title).source))].join('|'));
  return runner.run(file, names, { recorded: places, replacement: null, calls: {}, testTimeout: RECORDED_TIME });
}

/** Runs the claim's tests, which were recorded unchanged, with its symbol replaced. */
export async function verdict(
  runner: Pick<Runner, 'run'>,
  claim: Planned,
  recorded: readonly TestResult[],
): Promise<Omit<Verdict, 'claim'>> {
  const { file, title, replacement } = claim;
  const cited = recorded.filter(({ name }) => namesOf(title).test(name));
  if (cited.length === 0) return { obstacle: 'the test does not run' };
  const broken = cited.find(({ failure }) => failure !== null);
  if (broken !== undefined) return { obstacle: `the test fails as it stands: ${broken.name}: ${broken.failure}` };
  const using = replacement.kind === 'call' ? cited.filter(({ calls }) => succeeds(calls, replacement.places)) : cited;
  if (using.length === 0) return { obstacle: 'no call of it succeeds in the test' };
  const calls: Proof['calls'] = Object.fromEntries(using.map((test) => [test.id, test.calls]));
  const testTimeout = Math.max(MIN_REPLACED_TIME, SLOWER * Math.max(...using.map(({ duration }) => duration)));
  const names = exactly(using.map(({ name }) => name));
  const replaced = await runner.run(file, names, { recorded: [], replacement, calls, testTimeout });
  if (replaced.length === 0) return { obstacle: 'no test runs with it replaced' };
  const fault = replaced.find(({ isOwnFault }) => isOwnFault);
  if (fault !== undefined) return { obstacle: `the replacement fails: ${fault.failure}` };
  if (replaced.every(({ effects }) => effects === 0)) return { obstacle: 'the replacement changes nothing that the test runs' };
  const failure = replaced.find((each) => each.failure !== null)?.failure;
  return failure == null ? { obstacle: 'the test passes with it replaced' } : { obstacle: null, failure };
}

function succeeds(calls: TestResult['calls'], places: readonly Place[]): boolean {
  return places.some((place) => /[rR]/.test(`${calls[keyOf(place)] ?? ''}${calls[`before ${keyOf(place)}`] ?? ''}`));
}

function messageOf(error: unknown): string {
  return `the tests cannot be run: ${error instanceof Error ? error.message : String(error)}`;
}
