/**
 * A copy of the tree in a temporary folder, where mutations are applied and reverted. The original is never written to.
 *
 * Sources and build results are copied, node_modules is linked. The core's build results are kept in memory and
 * restored after a mutant of the core, which is faster than another build.
 */
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { isCore, type Mutant, mutated } from './list.ts';
import { run } from './process.ts';

/** Folders of the root that are not copied, and the folders of build/ that no test reads. */
const LEFT_OUT = new Set([
  '.git',
  'node_modules',
  'coverage',
  'data',
  ...['modules', 'mutants', 'fuzz', 'conformance'].map((folder) => `build/${folder}`),
]);
/** Files that a build of the core writes. */
const BUILT = ['dist/core.wasm', 'build/core.test.wasm', 'build/aead.test.wasm', 'bindings/core-wasm.generated.ts', 'build/stamps.json'];
/** Tests of the core's internals load the test build of the module. */
const CORE_TESTS = 'test/core-as/';
/** Time limit of a build of the core, ms. */
const BUILD_LIMIT = 120_000;

export class Copy {
  /** Root of the copy. */
  readonly root: string;
  readonly #built: ReadonlyMap<string, Buffer>;

  /** Copies the tree at `original`, which must be built. */
  constructor(original: string) {
    this.root = mkdtempSync(join(tmpdir(), 'svc-mutants-'));
    cpSync(original, this.root, {
      recursive: true,
      filter: (source) => !LEFT_OUT.has(source.slice(original.length).replace(/^\//, '')) && basename(source) !== '.git',
    });
    symlinkSync(join(original, 'node_modules'), join(this.root, 'node_modules'), 'dir');
    this.#built = new Map(BUILT.map((file) => [file, readFileSync(join(this.root, file))]));
  }

  /**
   * Runs `action` while the mutation is applied, and returns its result. Returns null without running it when the core
   * does not compile with the mutation.
   */
  async with<T>(mutant: Mutant, action: () => Promise<T>): Promise<T | null> {
    const path = join(this.root, mutant.file);
    const source = readFileSync(path, 'utf8');
    writeFileSync(path, mutated(source, mutant));
    try {
      if (isCore(mutant) && !(await this.#buildCore(mutant.tests))) return null;
      return await action();
    } finally {
      writeFileSync(path, source);
      if (isCore(mutant)) for (const [file, bytes] of this.#built) writeFileSync(join(this.root, file), bytes);
    }
  }

  /** Deletes the copy. */
  remove(): void {
    rmSync(this.root, { recursive: true, force: true });
  }

  /** Builds the modules that `tests` load. Returns false when the core does not compile. */
  async #buildCore(tests: readonly string[]): Promise<boolean> {
    const inside = tests.filter((test) => test.startsWith(CORE_TESTS)).length;
    const only = inside === 0 ? ['--wasm=release'] : inside === tests.length ? ['--wasm=test'] : ['--wasm'];
    const { status } = await run([join(this.root, 'build.mjs'), ...only], this.root, BUILD_LIMIT);
    return status === 0;
  }
}
