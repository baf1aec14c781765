/**
 * Records calls, and replaces declarations of modules. A worker has one task, for one test file, so the state here is
 * global to the worker.
 */
import { type Around, around, changeConstant, loseMember, rebind, unregistered, withoutEvent } from './members.ts';
import type { Replacement } from './replacement.ts';
import type { Place } from './sources.ts';

/** The task that the parent gives a worker. */
export interface Proof {
  /** What is recorded when nothing is replaced. */
  readonly recorded: readonly Place[];
  readonly replacement: Replacement | null;
  /** Recorded outcomes by test and place; a place before the first test has the prefix `before `. */
  readonly calls: Readonly<Record<string, Readonly<Record<string, string>>>>;
  readonly testTimeout: number;
}

declare module 'vitest' {
  export interface ProvidedContext {
    proof: Proof;
  }
}

/** A declared name of a module: it can be read, and replaced where the language allows it. */
export interface Declaration {
  get(): unknown;
  set?(value: unknown): void;
}

export type Declarations = Readonly<Record<string, Declaration>>;

/**
 * One letter for each call, in order: it returned, threw, or returned a promise that was resolved, rejected or still
 * pending.
 */
type Outcome = 'r' | 't' | 'R' | 'T' | 'p';

let test = '';
let effects = 0;
const calls = new Map<string, Record<string, Outcome[]>>();

/** Later calls belong to this test. */
export function startTest(id: string): void {
  test = id;
}

/** Outcomes by place of a test, with those before the first test. */
export function recordedCalls(id: string): Record<string, string> {
  const own = [...Object.entries(calls.get(id) ?? {}).map(([place, outcomes]) => [place, outcomes.join('')])];
  const before = Object.entries(calls.get('') ?? {}).map(([place, outcomes]) => [`before ${place}`, outcomes.join('')]);
  return Object.fromEntries([...own, ...before]);
}

/** How often a replacement took effect: a call that did nothing, a member, event or endpoint that was taken away. */
export function effectCount(): number {
  return effects;
}

function note(): void {
  effects++;
}

export function keyOf({ file, name, member }: Place): string {
  return `${file}:${name}${member === undefined ? '' : `.${member}`}`;
}

/** For the code that plugin.ts adds to a module. */
export function openModule({ recorded, replacement, calls: earlier }: Proof, file: string, declarations: Declarations): void {
  const own = (places: readonly Place[]) => places.filter((place) => place.file === file);
  if (replacement === null) for (const place of own(recorded)) record(declarations, place);
  else for (const place of own(replacement.places)) replace(declarations, place, replacement, earlier);
}

function record(declarations: Declarations, place: Place): void {
  around(declarations, place, (call) => {
    const outcomes = outcomesOf(keyOf(place));
    const at = outcomes.push('p') - 1;
    try {
      const result = call();
      if (!isPromise(result)) outcomes[at] = 'r';
      else
        result.then(
          () => (outcomes[at] = 'R'),
          () => (outcomes[at] = 'T'),
        );
      return result;
    } catch (error) {
      outcomes[at] = 't';
      throw error;
    }
  });
}

function outcomesOf(key: string): Outcome[] {
  const own = calls.get(test) ?? {};
  calls.set(test, own);
  own[key] ??= [];
  return own[key];
}

function replace(declarations: Declarations, place: Place, replacement: Replacement, earlier: Proof['calls']): void {
  const instead = insteadOf(replacement, place, earlier);
  if (instead !== null) around(declarations, place, instead);
  else if (replacement.kind === 'constant') {
    changeConstant(declarations[place.name]?.get() as Record<string, unknown>, place.member);
    note();
  } else if (replacement.kind === 'error')
    rebind(declarations, place.name, (make, args) =>
      isMadeByTest() ? make() : make(args.map((each) => otherCode(each, replacement.value))),
    );
}

/** Runs in place of calls; null where the replaced symbol is not called. */
function insteadOf(replacement: Replacement, place: Place, earlier: Proof['calls']): Around | null {
  switch (replacement.kind) {
    case 'call':
      return idle(keyOf(place), earlier);
    case 'event':
      return (call, args) => call(withoutEvent(args, replacement.value, note));
    case 'endpoint':
      return (call, args) => unregistered(call, args, replacement.value, note);
    case 'member': {
      const lose = (value: unknown) => loseMember(value, replacement.path, note);
      return (call, args) => {
        const result = call(args.map(lose));
        return isPromise(result) ? result.then(lose) : lose(result);
      };
    }
    default:
      return null;
  }
}

/** Does nothing where a call succeeded, or where the recording has none. */
function idle(key: string, earlier: Proof['calls']): Around {
  const before = Object.values(earlier)[0]?.[`before ${key}`] ?? '';
  const promised = Object.values(earlier).some((outcomes) => /[RT]/.test(`${outcomes[key] ?? ''}${before}`));
  const counts = new Map<string, number>();
  return (call) => {
    const at = counts.get(test) ?? 0;
    counts.set(test, at + 1);
    const outcome = test === '' ? before[at] : earlier[test]?.[key]?.[at];
    if (outcome === 't' || outcome === 'T' || outcome === 'p') return call();
    note();
    return outcome === 'R' || (outcome === undefined && promised) ? Promise.resolve() : undefined;
  };
}

/** UNKNOWN for the code, alone or among the results of channels; FAILED for UNKNOWN. */
function otherCode(value: unknown, code: string): unknown {
  if (value === code) {
    note();
    return code === 'UNKNOWN' ? 'FAILED' : 'UNKNOWN';
  }
  const isChannels = typeof value === 'object' && value !== null && 'remote' in value;
  return isChannels ? Object.fromEntries(Object.entries(value).map(([channel, result]) => [channel, otherCode(result, code)])) : value;
}

/**
 * Stack frames between the replacement and the place that creates an error: the replacement itself, constructors, and
 * the engine.
 */
const BETWEEN = /conformance\/prove\/|\bat new |\bat Object\.construct|\bReflect\.|<anonymous>/;

/** Whether a test or its fixtures create the error: then no code of the project raised it, and it keeps its code. */
function isMadeByTest(): boolean {
  const frames = new Error().stack?.split('\n').slice(1) ?? [];
  return frames.find((frame) => !BETWEEN.test(frame))?.includes('/test/') ?? false;
}

function isPromise(value: unknown): value is Promise<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}
