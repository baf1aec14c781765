/**
 * Calls functions with wrong types. A row has arguments that are right; each in turn is replaced by values that are
 * wrong in its place, and so is each member of an object of options. Each call must fail with INVALID_ARGUMENT.
 */
import { expect } from 'vitest';
import { codeOf } from './code-of.ts';

/** An argument that may also be null. */
export class OrNull {
  readonly value: unknown;
  constructor(value: unknown) {
    this.value = value;
  }
}

/** A value that is not replaced: another in its place is another test's business, or does nothing. */
export class Fixed {
  readonly value: unknown;
  constructor(value?: unknown) {
    this.value = value;
  }
}

/** The right arguments of a function. */
export type Row = readonly unknown[];

const detached = new ArrayBuffer(8);
const ofDetached = new Uint8Array(detached);
structuredClone(detached, { transfer: [detached] });

/** Neither text nor bytes. */
export const NO_PAYLOADS: readonly unknown[] = [null, 5, true, {}, [1, 2], '\ud800', new SharedArrayBuffer(3), detached, ofDetached];

/** Values that cannot be put into a text. */
const NO_TEXTS: readonly unknown[] = [Symbol('x'), [Symbol('x')], Object.create(null), { toString: null }];

/** Returns values that are wrong in the place of this one. */
function wrong(value: unknown): readonly unknown[] {
  if (value instanceof Fixed) return [];
  if (value instanceof OrNull) return wrong(value.value).filter((each) => each !== null);
  return ['string', 'number', 'boolean'].includes(typeof value)
    ? [...NO_TEXTS, 7n, ...wrongKinds(value)]
    : [Symbol('x'), ...wrongKinds(value)];
}

function wrongKinds(value: unknown): readonly unknown[] {
  if (typeof value === 'string') return [null, 5, true, {}, ['a'], '\udc00'];
  if (typeof value === 'number') return [null, '1', true, {}, Number.NaN, -1];
  if (typeof value === 'boolean') return [null, 1, 'true', {}];
  if (typeof value === 'function') return [null, 5, 'x', {}];
  if (value instanceof Uint8Array) return NO_PAYLOADS;
  if (Array.isArray(value)) return [null, 5, 'x', {}, [5], [null]];
  return isOptions(value as object) ? wrongOptions(value as object) : [null, 5, 'x', {}];
}

/** A listener has a method; that of options is {@link Math.abs}. */
function isOptions(value: object): boolean {
  const hasMethod = Object.values(value).some((each) => typeof each === 'function' && each !== Math.abs);
  return Object.getPrototypeOf(value) === Object.prototype && !hasMethod;
}

function wrongOptions(options: object): readonly unknown[] {
  const right = Object.fromEntries(Object.entries(options).map(([name, value]) => [name, plain(value)]));
  const members = Object.entries(options).flatMap(([name, value]) => wrong(value).map((each) => ({ ...right, [name]: each })));
  return [null, 5, 'x', [], new AbortController().signal, Promise.resolve(), { ...right, noSuchOption: true }, ...members];
}

function plain(value: unknown): unknown {
  return value instanceof OrNull || value instanceof Fixed ? value.value : value;
}

/** Returns what was taken that is wrong, each with the code it got. */
export async function takenWrongly(name: string, call: (...parameters: never[]) => unknown, right: Row): Promise<string[]> {
  const taken: string[] = [];
  for (const [index, value] of right.entries()) {
    for (const replaced of wrong(value)) {
      const given = right.map(plain);
      given[index] = replaced;
      const code = await codeOf(() => call(...(given as never[])));
      if (code !== 'INVALID_ARGUMENT') taken.push(`${name}: argument ${index} ${show(replaced).slice(-200)} got ${code}`);
    }
  }
  return taken;
}

/** Every method of the object's class has a row, and takes nothing wrong. */
export async function expectChecked(object: object, rows: Readonly<Record<string, Row>>): Promise<void> {
  const prototype = Object.getPrototypeOf(object);
  expect(Object.keys(rows).sort()).toEqual(methodsOf(prototype).sort());
  const taken: string[] = [];
  for (const [name, right] of Object.entries(rows)) {
    const method = (object as Record<string, (...parameters: never[]) => unknown>)[name]!;
    taken.push(...(await takenWrongly(`${prototype.constructor.name}.${name}`, method.bind(object), right)));
  }
  expect(taken).toEqual([]);
}

/** Every function of a module, classes apart, has a row, and takes nothing wrong. */
export async function expectFunctionsChecked(module: object, rows: Readonly<Record<string, Row>>): Promise<void> {
  const functions = Object.entries(module).filter(([name, value]) => typeof value === 'function' && /^[a-z]/.test(name));
  expect(Object.keys(rows).sort()).toEqual(functions.map(([name]) => name).sort());
  const taken: string[] = [];
  for (const [name, call] of functions) taken.push(...(await takenWrongly(name, call, rows[name]!)));
  expect(taken).toEqual([]);
}

function methodsOf(prototype: object): string[] {
  const above = Object.getPrototypeOf(prototype);
  const own = Object.entries(Object.getOwnPropertyDescriptors(prototype)).flatMap(([name, { value }]) =>
    typeof value === 'function' && name !== 'constructor' ? [name] : [],
  );
  return above === Object.prototype ? own : [...new Set([...own, ...methodsOf(above)])];
}

function show(value: unknown): string {
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer || value instanceof SharedArrayBuffer) return value.constructor.name;
  const texts = ['symbol', 'bigint', 'function'];
  return JSON.stringify(value, (_, each) => (texts.includes(typeof each) ? typeof each : each)) ?? typeof value;
}
