/**
 * Typed accessors for decoded maps. Each takes the map, the field's name and its limits, and returns the value or
 * throws a RemoteError PARSE that names the field. Unused keys are ignored, so that a newer sender can add keys. Null
 * counts as absent.
 *
 * Each accessor has a form for required fields and one, prefixed `optional`, that returns undefined when the field is
 * absent.
 */
import { RemoteError } from '../errors/index.ts';

/** A decoded map. Access it with the functions of this file: a plain object inherits names such as `constructor`. */
export type CborMap = Readonly<Record<string, unknown>>;

/** Length of a text. */
export interface TextLimits {
  /** UTF-8 bytes. */
  readonly max: number;
  /** UTF-8 bytes, default 0. */
  readonly min?: number;
}

/** Range of an unsigned integer. */
export interface UintLimits {
  /** Default 2^53 - 1. */
  readonly max?: number;
  /** Default 0. */
  readonly min?: number;
}

/** Length of a byte string; any length by default. */
export interface BytesLimits {
  readonly max?: number;
  readonly min?: number;
  /** Exact length; overrides `min` and `max`. */
  readonly exact?: number;
}

/** Validates the value of a present field. */
type Check<T, L> = (value: unknown, name: string, limits: L) => T;

/** `value` as a map. @param name its name in the error */
export function map(value: unknown, name = 'body'): CborMap {
  const plain = typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Uint8Array);
  return plain ? (value as CborMap) : reject(name, 'is not a map');
}

/** `value` as an array of at most `max` entries. */
export function array(value: unknown, name: string, max: number): readonly unknown[] {
  if (!Array.isArray(value)) return reject(name, 'is not an array');
  return value.length <= max ? value : reject(name, `has more than ${max} entries`);
}

/** A text within the limits. @throws RemoteError PARSE, as every accessor of a required field */
export function text(from: CborMap, name: string, limits: TextLimits): string {
  return required(from, name, limits, checkText);
}

/** As {@link text}, or undefined when the field is absent. */
export function optionalText(from: CborMap, name: string, limits: TextLimits): string | undefined {
  return optional(from, name, limits, checkText);
}

/** An unsigned integer within the limits, by default up to 2^53 - 1. */
export function uint(from: CborMap, name: string, limits: UintLimits = {}): number {
  return required(from, name, limits, checkUint);
}

/** As {@link uint}, or undefined when the field is absent. */
export function optionalUint(from: CborMap, name: string, limits: UintLimits = {}): number | undefined {
  return optional(from, name, limits, checkUint);
}

/** Returns the byte string itself, not a copy: decoded byte strings own their memory. */
export function bytes(from: CborMap, name: string, limits: BytesLimits): Uint8Array {
  return required(from, name, limits, checkBytes);
}

/** As {@link bytes}, or undefined when the field is absent. */
export function optionalBytes(from: CborMap, name: string, limits: BytesLimits): Uint8Array | undefined {
  return optional(from, name, limits, checkBytes);
}

/** A boolean. */
export function bool(from: CborMap, name: string): boolean {
  return required(from, name, undefined, checkBool);
}

/** As {@link bool}, or undefined when the field is absent. */
export function optionalBool(from: CborMap, name: string): boolean | undefined {
  return optional(from, name, undefined, checkBool);
}

/** A map inside the map. */
export function mapField(from: CborMap, name: string): CborMap {
  return required(from, name, undefined, (value) => map(value, name));
}

/** As {@link mapField}, or undefined when the field is absent. */
export function optionalMapField(from: CborMap, name: string): CborMap | undefined {
  return optional(from, name, undefined, (value) => map(value, name));
}

/** @param max entries */
export function arrayField(from: CborMap, name: string, max: number): readonly unknown[] {
  return required(from, name, max, array);
}

/** @param max entries */
export function optionalArrayField(from: CborMap, name: string, max: number): readonly unknown[] | undefined {
  return optional(from, name, max, array);
}

/** Returns every entry of `values` as text within the limits. */
export function texts(values: readonly unknown[], name: string, limits: TextLimits): string[] {
  return values.map((value, i) => checkText(value, `${name}[${i}]`, limits));
}

/** Returns a bare text value, for bodies that are not maps. */
export function textValue(value: unknown, name: string, limits: TextLimits): string {
  return checkText(value, name, limits);
}

/** Returns the length of a text in UTF-8 bytes without encoding it. */
export function utf8Length(text: string): number {
  let length = text.length;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit < 0x80) continue;
    // Two surrogates make four bytes.
    length += unit < 0x800 || (unit & 0xf800) === 0xd800 ? 1 : 2;
  }
  return length;
}

function checkText(value: unknown, name: string, limits: TextLimits): string {
  if (typeof value !== 'string') return reject(name, 'is not text');
  const length = utf8Length(value);
  if (length > limits.max) return reject(name, `is longer than ${limits.max} bytes`);
  return length >= (limits.min ?? 0) ? value : reject(name, `is shorter than ${limits.min} bytes`);
}

function checkUint(value: unknown, name: string, limits: UintLimits): number {
  const { min = 0, max = Number.MAX_SAFE_INTEGER } = limits;
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0) return reject(name, 'is not an unsigned integer');
  return value >= min && value <= max ? value : reject(name, `is not between ${min} and ${max}`);
}

function checkBytes(value: unknown, name: string, limits: BytesLimits): Uint8Array {
  const { min = 0, max = Number.MAX_SAFE_INTEGER, exact } = limits;
  if (!(value instanceof Uint8Array)) return reject(name, 'is not a byte string');
  if (exact !== undefined) return value.length === exact ? value : reject(name, `does not have ${exact} bytes`);
  return value.length >= min && value.length <= max ? value : reject(name, `does not have ${min} to ${max} bytes`);
}

function checkBool(value: unknown, name: string): boolean {
  return typeof value === 'boolean' ? value : reject(name, 'is not a boolean');
}

function required<T, L>(from: CborMap, name: string, limits: L, check: Check<T, L>): T {
  const value = own(from, name);
  return value === undefined ? reject(name, 'is missing') : check(value, name, limits);
}

function optional<T, L>(from: CborMap, name: string, limits: L, check: Check<T, L>): T | undefined {
  const value = own(from, name);
  return value === undefined ? undefined : check(value, name, limits);
}

function own(from: CborMap, name: string): unknown {
  return Object.hasOwn(from, name) ? (from[name] ?? undefined) : undefined;
}

function reject(name: string, problem: string): never {
  throw new RemoteError('PARSE', `${name} ${problem}`);
}
