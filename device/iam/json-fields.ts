/** Parses a JSON document of a known shape: each value knows its place in the document, and errors name that place. */
import { LocalError } from '../../protocol/errors/index.ts';

/** A value and its place, for example `Policies[2].Statements[0]`. */
export class JsonField {
  readonly #value: unknown;
  readonly #parent: JsonField | undefined;
  readonly #step: string | number;

  constructor(value: unknown, parent?: JsonField, step: string | number = '') {
    this.#value = value;
    this.#parent = parent;
    this.#step = step;
  }

  /** @throws LocalError PARSE, always */
  reject(problem: string): never {
    const place = this.#place;
    throw new LocalError('PARSE', place === '' ? problem : `${place}: ${problem}`);
  }

  get text(): string {
    return typeof this.#value === 'string' ? this.#value : this.reject('must be a text');
  }

  get boolean(): boolean {
    return typeof this.#value === 'boolean' ? this.#value : this.reject('must be true or false');
  }

  get integer(): number {
    return Number.isSafeInteger(this.#value) ? (this.#value as number) : this.reject('must be a whole number');
  }

  get number(): number {
    return Number.isFinite(this.#value) ? (this.#value as number) : this.reject('must be a number');
  }

  get array(): JsonField[] {
    const value = this.#value;
    if (!Array.isArray(value)) return this.reject('must be an array');
    return value.map((each, index) => new JsonField(each, this, index));
  }

  get texts(): string[] {
    return this.array.map((each) => each.text);
  }

  /** Names of the object's members. */
  get names(): string[] {
    return Object.keys(this.#object);
  }

  /** Refuses members that are not listed: a misspelt member would count as absent. */
  only(names: readonly string[]): this {
    const unknown = this.names.find((name) => !names.includes(name));
    if (unknown !== undefined) this.reject(`unknown member "${unknown.slice(0, 64)}"`);
    return this;
  }

  /** A member that may be absent. */
  optional(name: string): JsonField | undefined {
    const object = this.#object;
    const value = Object.hasOwn(object, name) ? object[name] : undefined;
    return value === undefined ? undefined : new JsonField(value, this, name);
  }

  required(name: string): JsonField {
    return this.optional(name) ?? this.reject(`"${name}" is missing`);
  }

  /** Runs a check; adds the place to its error. */
  check(check: () => void): void {
    try {
      check();
    } catch (error) {
      this.reject((error as Error).message);
    }
  }

  /** Built only for an error. */
  get #place(): string {
    const before = this.#parent === undefined ? '' : this.#parent.#place;
    if (typeof this.#step === 'number') return `${before}[${this.#step}]`;
    return before === '' ? this.#step : `${before}.${this.#step}`;
  }

  get #object(): Readonly<Record<string, unknown>> {
    const value = this.#value;
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return this.reject('must be an object');
    return value as Readonly<Record<string, unknown>>;
  }
}
