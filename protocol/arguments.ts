/**
 * Checks of what an application passes to the public functions of client, device and base station. A value of a wrong
 * type, and an option that does not exist and would do nothing, is INVALID_ARGUMENT in one line, before anything else
 * happens.
 *
 * A value of a plain type has a `Kind`: its test, and what it must be. The bounds of a value are the business of the
 * function that takes it.
 */
import { LocalError } from './errors/index.ts';

/** Text, which counts as its UTF-8, or bytes: those of an ArrayBuffer or of any view, unless it is detached. */
export type Payload = string | ArrayBuffer | ArrayBufferView;

/** A test of a value, and what the value must be, as in "the port must be …". */
export type Kind = readonly [accepts: (value: unknown) => boolean, form: string];

/** Whether it is a text without lone surrogates, which have no UTF-8 (RFC 3629 §3). */
export function isText(value: unknown): value is string {
  return typeof value === 'string' && !/\p{Surrogate}/u.test(value);
}

export const text: Kind = [isText, 'text without half characters'];
export const nonEmptyText: Kind = [(value) => isText(value) && value !== '', 'a text'];
export const flag: Kind = [(value) => typeof value === 'boolean', 'true or false'];
export const callback: Kind = [(value) => typeof value === 'function', 'a function'];
export const texts: Kind = [(value) => Array.isArray(value) && value.every(isText), 'an array of texts'];
export const textMap: Kind = [(value) => isPlain(value) && Object.values(value).every(isText), 'an object of texts'];
export const plainObject: Kind = [isPlain, 'a plain object'];
/** An object of the application or of this SDK, whose members are used when they are needed. */
export const object: Kind = [(value) => isObject(value) && !Array.isArray(value), 'an object'];
export const signal: Kind = [
  (value) => isObject(value) && typeof value.aborted === 'boolean' && typeof value.addEventListener === 'function',
  'an AbortSignal',
];

/** A rate or limit, which may be Infinity. */
export const amount: Kind = [(value) => typeof value === 'number' && value >= 0, 'a number from 0'];

/** A whole number with inclusive bounds. */
export function whole(least: number, most: number = Number.MAX_SAFE_INTEGER): Kind {
  const bounds = most === Number.MAX_SAFE_INTEGER ? `from ${least}` : `from ${least} to ${most}`;
  return [(value) => Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most, `a whole number ${bounds}`];
}

/** What a setter checks, which the options call. */
export const checkedBySetter: Kind = [() => true, 'anything'];

/** One of some texts. */
export function oneOf(values: readonly string[]): Kind {
  return [(value) => values.includes(value as string), `one of ${values.join(', ')}`];
}

/** An object of the application with these methods: a listener, for example. */
export function withMethods(...names: readonly string[]): Kind {
  return [(value) => isObject(value) && names.every((name) => typeof value[name] === 'function'), `an object with ${names.join(', ')}`];
}

/** An object of this SDK. */
export function isInstance(type: { readonly name: string; [Symbol.hasInstance](value: unknown): boolean }): Kind {
  return [(value) => type[Symbol.hasInstance](value), `of the class ${type.name}`];
}

/** An object of options within options. */
export function options<T extends object>(
  whose: string,
  kinds: Readonly<Record<keyof T, Kind>>,
  required: readonly (keyof T & string)[] = [],
): Kind {
  const accepts = (value: unknown): boolean => {
    checkOptions(whose, value as T, kinds, required);
    return true;
  };
  return [accepts, 'an object of options'];
}

/** The kind, or null. */
export function orNull([accepts, form]: Kind): Kind {
  return [(value) => value === null || accepts(value), `${form}, or null`];
}

/** The kind, or nothing. */
export function optional([accepts, form]: Kind): Kind {
  return [(value) => value === undefined || accepts(value), form];
}

/** @param what as in "the port". @throws LocalError INVALID_ARGUMENT unless the value is of the kind */
export function check(what: string, value: unknown, [accepts, form]: Kind): void {
  if (!accepts(value)) throw invalid(`${what} must be ${form}`);
}

/**
 * Checks an object of options: its names, and the kind of each value that is not undefined.
 * @param whose as in "a device"
 * @param required names of values that must not be undefined
 * @throws LocalError INVALID_ARGUMENT
 */
export function checkOptions<T extends object>(
  whose: string,
  given: T,
  kinds: Readonly<Record<keyof T, Kind>>,
  required: readonly (keyof T & string)[] = [],
): void {
  if (!isPlain(given)) throw invalid(`the options of ${whose} must be a plain object`);
  for (const [name, value] of Object.entries(given)) {
    if (!Object.hasOwn(kinds, name))
      throw invalid(`${whose} has no option ${JSON.stringify(name.slice(0, 64))}: ${remedyFor(name, Object.keys(kinds))}`);
    if (value !== undefined) check(`the option ${name} of ${whose}`, value, kinds[name as keyof T]);
  }
  for (const name of required) check(`the option ${name} of ${whose}`, given[name], kinds[name]);
}

/**
 * Returns the bytes of a payload, not copied, or the UTF-8 of its text.
 * @throws LocalError INVALID_ARGUMENT
 */
export function bytesOf(what: string, payload: Payload): Uint8Array {
  // The usual case, for each piece of a stream. A detached array has no bytes. To look at the buffer of a small array
  // would cost more than all else here: V8 makes one for it then. So bytes of shared memory are bytes, too.
  if (payload instanceof Uint8Array && payload.length > 0) return payload;
  const bytes = isText(payload) ? new TextEncoder().encode(payload) : viewOf(payload);
  if (bytes === null) throw invalid(`${what} must be text without half characters, an ArrayBuffer or a view, not detached`);
  return bytes;
}

/** Null for anything but a view, or an ArrayBuffer of any realm; and for a detached one. */
function viewOf(value: unknown): Uint8Array | null {
  try {
    if (ArrayBuffer.isView(value)) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
    // Throws for anything else, also for a SharedArrayBuffer.
    ArrayBuffer.prototype.slice.call(value as ArrayBuffer, 0, 0);
    return new Uint8Array(value as ArrayBuffer);
  } catch {
    return null;
  }
}

/** A misspelt option would count as absent. */
function remedyFor(name: string, names: readonly string[]): string {
  const meant = names.find((each) => plain(each) === plain(name));
  if (meant !== undefined) return `the name is "${meant}"`;
  return names.length === 0 ? 'it has none' : `the options are ${names.join(', ')}`;
}

/** A name as people remember it: product_id, productID, ProductId. */
function plain(name: string): string {
  return name.replace(/[^A-Za-z0-9]/g, '').toLowerCase();
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

/** An object literal of any realm: an AbortSignal or a Promise in its place would be options without effect. */
export function isPlain(value: unknown): value is Record<string, unknown> {
  if (!isObject(value)) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function invalid(message: string): LocalError {
  return new LocalError('INVALID_ARGUMENT', message);
}
