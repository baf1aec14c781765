/**
 * Runs the program of a document: its fenced blocks of JavaScript, one after the other.
 *
 * 1. A block begins with ```` ```js name ````. Its imports are resolved from the given modules.
 * 2. Later blocks see its top-level declarations, which are lines that begin at their first column.
 * 3. A block must print what its comments `// prints a, then b` say, and nothing else: `a` before the next block runs,
 *    the rest until `end`.
 *
 * Blocks are functions of this process and share its globals, except `console` and the given names.
 */
import { expect } from 'vitest';
import { Deferred } from '../../runtime/deferred.ts';

/** A fenced block of JavaScript. */
export interface Block {
  readonly name: string;
  readonly code: string;
}

/** Every block of JavaScript of a document. @throws Error for one without a name, or a name that occurs twice */
export function blocksOf(markdown: string): Block[] {
  const blocks = [...markdown.matchAll(/^( *)```(?:js|javascript|mjs|ts|typescript)\b *(.*)\n([\s\S]*?)^\1```$/gm)].map(
    ([, indent = '', name = '', code = '']): Block => ({
      name: name.trim(),
      code: code.replaceAll(`\n${indent}`, '\n').slice(indent.length),
    }),
  );
  const names = blocks.map(({ name }) => name);
  if (names.includes('')) throw new Error('a block has no name: it is not run');
  if (new Set(names).size < names.length) throw new Error(`two blocks have one name: ${names.join(', ')}`);
  return blocks;
}

/** Specifier → exports of the module. */
export type Modules = Readonly<Record<string, object>>;

const AsyncFunction = (async () => {}).constructor as new (...names: string[]) => (...values: unknown[]) => Promise<object>;

/** Runs blocks. */
export class Program {
  readonly #modules: Modules;
  readonly #names: Record<string, unknown>;
  readonly #outputs: Output[] = [];

  /** @param names visible to the blocks, beside their imports and each other's declarations */
  constructor(modules: Modules, names: Readonly<Record<string, unknown>>) {
    this.#modules = modules;
    this.#names = { ...names };
  }

  /** Runs a block, and waits for the first text that each of its lines prints. @param names for this block alone */
  async run({ name, code }: Block, names: Readonly<Record<string, unknown>> = {}): Promise<void> {
    const output = new Output(name, printsOf(code));
    this.#outputs.push(output);
    const given = { ...this.#names, ...names, ...this.#imports(code), console: output.console };
    const body = code.replaceAll(IMPORT, '');
    const declared = declarationsOf(body).filter((each) => !Object.hasOwn(names, each));
    // A declaration of the block shadows an earlier name.
    const taken = Object.keys(given).filter((each) => !declared.includes(each));
    const run = new AsyncFunction(...taken, `'use strict';${body}\nreturn { ${declared.join(', ')} };`);
    Object.assign(this.#names, this.#imports(code), await run(...taken.map((each) => given[each as keyof typeof given])));
    await output.first();
  }

  /** A name that a block has declared. */
  value(name: string): unknown {
    return this.#names[name];
  }

  /** Waits for all output of the blocks. Fails where one has printed anything else. */
  async end(): Promise<void> {
    for (const output of this.#outputs) await output.all();
  }

  #imports(code: string): Record<string, unknown> {
    const found: Record<string, unknown> = {};
    for (const [, list = '', specifier = ''] of code.matchAll(IMPORT)) {
      const module = this.#modules[specifier] as Record<string, unknown> | undefined;
      if (module === undefined) throw new Error(`no module ${specifier}`);
      for (const each of list.split(',')) {
        const [exported = '', local = exported] = each.trim().split(' as ');
        if (!(exported in module)) throw new Error(`${specifier} exports no ${exported}`);
        found[local] = module[exported];
      }
    }
    return found;
  }
}

const IMPORT = /^import \{([^}]+)\} from '([^']+)';$/gm;

/** Names declared at the top level, which are lines that begin at their first column. */
function declarationsOf(code: string): string[] {
  const plain = [...code.matchAll(/^(?:const|let|function|async function) (\w+)/gm)].map(([, name = '']) => name);
  const destructured = [...code.matchAll(/^(?:const|let) ([[{].*?[\]}]) = /gm)].map(([, pattern = '']) => pattern);
  return [...plain, ...destructured.flatMap((pattern) => pattern.match(/\w+(?=\s*[,}\]])/g) ?? [])];
}

/** For each line that prints: its texts, in order. */
function printsOf(code: string): string[][] {
  return [...code.matchAll(/\/\/ prints (.*)$/gm)].map(([, text = '']) => text.split(', then '));
}

/** The output of a block. */
class Output {
  readonly #name: string;
  readonly #expected: readonly string[][];
  readonly #printed: string[] = [];
  #more = new Deferred<void>();

  constructor(name: string, expected: readonly string[][]) {
    this.#name = name;
    this.#expected = expected;
  }

  /** `error` is for readers of the program, and is never called in a test. */
  get console(): Pick<Console, 'log' | 'error'> {
    return {
      log: (...values) => {
        this.#printed.push(values.map(shown).join(' '));
        this.#more.resolve();
        this.#more = new Deferred();
      },
      error: () => {},
    };
  }

  first(): Promise<void> {
    return this.#until(this.#expected.flatMap(([first = '']) => first));
  }

  async all(): Promise<void> {
    const lines = this.#expected.flat();
    await this.#until(lines);
    expect(this.#printed.toSorted(), `what ${this.#name} prints`).toEqual(lines.toSorted());
  }

  async #until(lines: readonly string[]): Promise<void> {
    const missing = (): string[] => lines.filter((line) => !this.#printed.includes(line));
    while (missing().length > 0) {
      const wrong = this.#printed.filter((line) => !this.#expected.flat().includes(line));
      if (wrong.length > 0) throw new Error(`${this.#name} prints ${JSON.stringify(wrong)}, not ${JSON.stringify(missing())}`);
      await this.#more.promise;
    }
  }
}

/** In the form of the console. */
function shown(value: unknown): string {
  if (Array.isArray(value)) return `[ ${value.map((each) => `'${each}'`).join(', ')} ]`;
  return String(value);
}
