/**
 * Finds where a text stops being JSON (RFC 8259), for its author: some versions of Node's `JSON.parse` give no
 * position, and show a part of the text, which may be a secret.
 */

/** A position in a text; both count from 1, the column in UTF-16 code units. */
export interface JsonFault {
  readonly line: number;
  readonly column: number;
  /** The expected text there, described for a person. */
  readonly problem: string;
}

/**
 * The tokens of JSON, and blanks before them. A text has no control character: of those in `\p{Cc}`, RFC 8259 allows
 * DEL and above.
 */
const BLANKS = /[ \t\n\r]*/y;
const STRING = /"(?:[^"\\\p{Cc}]|[\x7f-\x9f]|\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4}))*"/uy;
const OTHER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.+-])|(?:true|false|null)(?!\w)/y;

/** Thrown within this file at the first fault. */
class Fault {
  readonly at: number;
  readonly problem: string;

  constructor(at: number, problem: string) {
    this.at = at;
    this.problem = problem;
  }
}

/** Returns the first fault of a text; null for valid JSON. */
export function jsonFault(text: string): JsonFault | null {
  try {
    new Reader(text).document();
    return null;
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    const before = text.slice(0, error.at).split('\n');
    return { line: before.length, column: (before.at(-1)?.length ?? 0) + 1, problem: error.problem };
  }
}

class Reader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** Not recursive: a text may be nested deeper than the stack. */
  document(): void {
    const open: ('}' | ']')[] = [];
    do {
      const opened = this.#begin(open.at(-1));
      if (opened !== null) {
        open.push(opened);
        continue;
      }
      this.#end(open);
    } while (open.length > 0);
    if (this.#next() !== '') this.#fail('nothing more is expected');
  }

  /**
   * Reads up to a value, and the value if it contains no others. @returns the closing bracket of an opened one; null
   * when a value is complete
   */
  #begin(inside: '}' | ']' | undefined): '}' | ']' | null {
    if (inside === '}') this.#name();
    const next = this.#next();
    if (next === '{' || next === '[') {
      this.#at++;
      const close = next === '{' ? '}' : ']';
      if (this.#next() !== close) return close;
      this.#at++;
      return null;
    }
    if (next === '"') this.#string();
    else if (!this.#skip(OTHER)) this.#fail('a value is expected');
    return null;
  }

  /** Call after a complete value: completes the containers that it ends. */
  #end(open: ('}' | ']')[]): void {
    for (let close = open.at(-1); close !== undefined; close = open.at(-1)) {
      const next = this.#next();
      if (next !== ',' && next !== close) this.#fail(`"," or "${close}" is expected`);
      this.#at++;
      if (next === ',') return;
      open.pop();
    }
  }

  #name(): void {
    if (this.#next() !== '"') this.#fail('a name in double quotes is expected');
    this.#string();
    if (this.#next() !== ':') this.#fail('":" is expected');
    this.#at++;
  }

  #string(): void {
    if (!this.#skip(STRING)) this.#fail('this text is not closed, or has a character that must be escaped');
  }

  /** Returns the next character after blanks; empty at the end. */
  #next(): string {
    this.#skip(BLANKS);
    return this.#text[this.#at] ?? '';
  }

  #skip(token: RegExp): boolean {
    token.lastIndex = this.#at;
    const found = token.test(this.#text);
    if (found) this.#at = token.lastIndex;
    return found;
  }

  #fail(problem: string): never {
    throw new Fault(this.#at, this.#at >= this.#text.length ? `it ends here, ${problem}` : problem);
  }
}
