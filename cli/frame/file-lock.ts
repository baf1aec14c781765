/** A lock file, which names the process that holds it. The lock of a killed process does not count. */
import { writeFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { fileError, readFileIfPresent } from '../../transport/node/index.ts';
import { livingProcess, thisProcess } from './process-mark.ts';

export class FileLock {
  readonly #path: string;
  readonly #content: string;

  private constructor(path: string, content: string) {
    this.#path = path;
    this.#content = content;
  }

  /**
   * Takes the lock, or returns the id of the process that holds it, which may be this one.
   * @throws LocalError FAILED that names the file
   */
  static async take(path: string): Promise<FileLock | number> {
    const own = await thisProcess();
    for (;;) {
      const content = await contentOf(path);
      const pid = await livingProcess(content ?? '');
      if (pid !== null) return pid;
      try {
        // If there was none, another process may just have created its own.
        if (content !== undefined) await rm(path, { force: true });
        // Created in one step, so that no other process finds it empty.
        writeFileSync(path, own, { flag: 'wx' });
        return new FileLock(path, own);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw fileError('cannot write', path, error);
      }
    }
  }

  /** Whether the lock is still held: of two processes that found a dead lock, the later may have taken it over. */
  async isHeld(): Promise<boolean> {
    return (await contentOf(this.#path)) === this.#content;
  }

  async release(): Promise<void> {
    if (await this.isHeld()) await rm(this.#path, { force: true });
  }
}

/** Returns the content; undefined where there is no file. */
async function contentOf(path: string): Promise<string | undefined> {
  const bytes = await readFileIfPresent(path);
  return bytes === undefined ? undefined : new TextDecoder().decode(bytes);
}
