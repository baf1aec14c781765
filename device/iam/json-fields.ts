/** Reads a JSON document with a known shape: each value knows its place in the document, and what is wrong is told with it. */
import { LocalError } from '../../protocol/errors/index.ts';

/** A value and where it stands, for example `Policies[2].Statements[0]`. */
export class JsonField {
  readonly #value: unknown;
  readonly #place: string;

  constructor(value: unknown, place = '') {
    this.#value = value;
    this.#place = place;
  }

  /** @throws LocalError PARSE, always */
  reject(problem: string): never {
    throw new LocalError('PARSE', this.#place === '' ? problem : `${this.#place}: ${problem}`);
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

  get array(): JsonField[] {
    const value = this.#value;
    if (!Array.isArray(value)) return this.reject('must be an array');
    return value.map((each, index) => new JsonField(each, `${this.#place}[${index}]`));
  }

  get texts(): string[] {
    return this.array.map((each) => each.text);
  }

  /** Names of the object's members. */
  get names(): string[] {
    return Object.keys(this.#object);
  }

  /** Refuses members that are not named: one with a slip in its name would count as absent. */
  only(names: readonly string[]): this {
    const unknown = this.names.find((name) => !names.includes(name));
    if (unknown !== undefined) this.reject(`unknown member "${unknown.slice(0, 64)}"`);
    return this;
  }

  /** A member that may be absent. */
  optional(name: string): JsonField | undefined {
    const object = this.#object;
    return Object.hasOwn(object, name) ? new JsonField(object[name], this.#place === '' ? name : `${this.#place}.${name}`) : undefined;
  }

  required(name: string): JsonField {
    return this.optional(name) ?? this.reject(`"${name}" is missing`);
  }

  /** Runs a check; what it says is wrong is told with the place. */
  check(check: () => void): void {
    try {
      check();
    } catch (error) {
      this.reject((error as Error).message);
    }
  }

  get #object(): Readonly<Record<string, unknown>> {
    const value = this.#value;
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return this.reject('must be an object');
    return value as Readonly<Record<string, unknown>>;
  }
}
