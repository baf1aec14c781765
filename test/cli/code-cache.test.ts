/**
 * V8's code for a bundle, kept between runs: it is used and bounded, and a file that another user could have written is
 * not trusted.
 */
import fs, {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { cacheDirectory, cacheFor, readCode, runBundle, writeCode } from '../../cli/frame/code-cache.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

/** Above every pid of Linux (proc(5): at most 2^22). */
const ENDED = 2 ** 22 + 1;

let folder: string;
let directory: string;

beforeEach(() => {
  folder = temporaryDirectory();
  directory = join(folder, 'cache', 'svc');
});
afterEach(() => void vi.restoreAllMocks());

describe('the folder', () => {
  test.each([
    [{ XDG_CACHE_HOME: '/c', HOME: '/h' }, '/c/svc'],
    [{ HOME: '/h' }, '/h/.cache/svc'],
    [{ XDG_CACHE_HOME: 'relative', HOME: '/h' }, '/h/.cache/svc'],
    [{ XDG_CACHE_HOME: '', HOME: '' }, undefined],
    [{}, undefined],
    [{ HOME: '/h', NODE_DISABLE_COMPILE_CACHE: '1' }, undefined],
    [{ HOME: '/h', NODE_DISABLE_COMPILE_CACHE: '' }, '/h/.cache/svc'],
  ])('of %j is %s', (environment, expected) => {
    expect(cacheDirectory(environment)).toBe(expected);
  });

  test('does not exist where files have no owner', () => {
    expect(cacheDirectory({ HOME: '/h' }, false)).toBeUndefined();
  });
});

describe('a cached file', () => {
  const cache = () => cacheFor('digest', 'coap', directory);

  test('is loaded again, and belongs to the user alone', () => {
    expect(readCode(cache())).toBeUndefined();
    writeCode(cache(), Buffer.from('code'));
    expect(readCode(cache())?.toString()).toBe('code');
    expect(statSync(directory).mode & 0o777).toBe(0o700);
    expect(statSync(cache().file).mode & 0o777).toBe(0o600);
    expect(readdirSync(directory)).toHaveLength(1);
  });

  test('belongs to one bundle, command and Node', () => {
    const files = [cache(), cacheFor('other', 'coap', directory), cacheFor('digest', 'iam', directory)].map(({ file }) => file);
    expect(new Set(files).size).toBe(3);
    expect(files[0]).toContain(process.version);
  });

  test.each([0o720, 0o702])('is neither loaded nor written in a folder of mode %o', (mode) => {
    writeCode(cache(), Buffer.from('code'));
    chmodSync(directory, mode);
    expect(readCode(cache())).toBeUndefined();
    const content = readFileSync(cache().file);
    writeCode(cache(), Buffer.from('newer'));
    expect(readFileSync(cache().file)).toEqual(content);
  });

  test.each([0o620, 0o602])('is not loaded with the mode %o', (mode) => {
    writeCode(cache(), Buffer.from('code'));
    chmodSync(cache().file, mode);
    expect(readCode(cache())).toBeUndefined();
  });

  test('is not loaded through a link', () => {
    writeCode(cache(), Buffer.from('code'));
    renameSync(cache().file, join(folder, 'moved'));
    symlinkSync(join(folder, 'moved'), cache().file);
    expect(readCode(cache())).toBeUndefined();
    mkdirSync(join(folder, 'elsewhere'));
    symlinkSync(join(folder, 'elsewhere'), join(folder, 'linked'));
    const through = cacheFor('digest', 'coap', join(folder, 'linked'));
    writeCode(through, Buffer.from('code'));
    expect(readdirSync(join(folder, 'elsewhere'))).toEqual([]);
  });

  test('of another user is neither loaded nor overwritten', () => {
    writeCode(cache(), Buffer.from('code'));
    vi.spyOn(process, 'getuid').mockReturnValue(process.getuid!() + 1);
    expect(readCode(cache())).toBeUndefined();
    const content = readFileSync(cache().file);
    writeCode(cache(), Buffer.from('newer'));
    expect(readFileSync(cache().file)).toEqual(content);
  });

  test('is not made in the home of another user', () => {
    vi.spyOn(process, 'getuid').mockReturnValue(process.getuid!() + 1);
    writeCode(cache(), Buffer.from('code'));
    expect(readdirSync(folder)).toEqual([]);
  });

  test('is not loaded where another user could replace the folder', () => {
    writeCode(cache(), Buffer.from('code'));
    // As root, which alone could give away the surrounding folder.
    const other = process.getuid!() + 1;
    vi.spyOn(process, 'getuid').mockReturnValueOnce(process.getuid!()).mockReturnValueOnce(other);
    expect(readCode(cache())).toBeUndefined();
  });

  test('leaves other files in the folder alone', () => {
    writeCode(cache(), Buffer.from('code'));
    const others = Array.from({ length: 30 }, (_, n) => join(directory, `source-${n}.c`));
    for (const file of others) writeFileSync(file, '');
    writeCode(cacheFor('digest2', 'coap', directory), Buffer.from('code'));
    expect(readdirSync(directory)).toHaveLength(32);
  });

  test('is removed when it is the oldest of 24 and another one is written', () => {
    const nth = (n: number) => cacheFor(`digest${n}`, 'coap', directory);
    for (let n = 0; n < 24; n++) {
      writeCode(nth(n), Buffer.from('code'));
      utimesSync(nth(n).file, 1_000 + ((n + 12) % 24), 1_000 + ((n + 12) % 24));
    }
    expect(readdirSync(directory)).toHaveLength(24);
    writeCode(nth(24), Buffer.from('code'));
    expect(readdirSync(directory)).toHaveLength(24);
    expect(existsSync(nth(12).file)).toBe(false);
    expect(existsSync(nth(24).file)).toBe(true);
  });

  test('is silently omitted where the folder cannot be written', () => {
    writeFileSync(join(folder, 'cache'), 'a file');
    writeCode(cache(), Buffer.from('code'));
    expect(readCode(cache())).toBeUndefined();
  });
});

describe('a bundle', () => {
  const bundle = (text = 'exports.sum = (a, b) => a + b; exports.require = typeof require; exports.folder = __dirname;') => {
    const file = join(folder, 'bundle.cjs');
    writeFileSync(file, `(function (exports, require, module, __filename, __dirname) {${text}\n})`);
    return file;
  };
  type Bundle = { sum(a: number, b: number): number };
  /** The work registered for the exit of this process. */
  const exits = () => {
    const listeners: ((code: number) => void)[] = [];
    vi.spyOn(process, 'once').mockImplementation(((_event: string, listener: (code: number) => void) => listeners.push(listener)) as never);
    return listeners;
  };

  /** The content with one bit of it flipped, at one of 40 places. */
  const flipped = (content: Buffer, place: number) => {
    const bit = Math.floor((place / 40) * content.length * 8);
    content[bit >> 3]! ^= 1 << (bit & 7);
    return content;
  };

  test('has what Node gives a module', () => {
    expect(runBundle(bundle(), undefined)).toMatchObject({ require: 'function', folder });
  });

  test('runs, saves its code at a successful exit, and uses it at the next run', () => {
    const listeners = exits();
    const cache = cacheFor('digest', 'coap', directory);
    expect((runBundle(bundle(), cache) as Bundle).sum(1, 2)).toBe(3);
    listeners[0]!(1);
    expect(readCode(cache)).toBeUndefined();
    listeners[0]!(0);
    const content = readFileSync(cache.file);
    expect(readCode(cache)!.length).toBeGreaterThan(100);
    expect((runBundle(bundle(), cache) as Bundle).sum(1, 2)).toBe(3);
    listeners[1]!(0);
    expect(listeners).toHaveLength(2);
    expect(readFileSync(cache.file)).toEqual(content);
  });

  test.each([
    ['garbage', () => Buffer.from('garbage')],
    ['nothing', () => Buffer.alloc(0)],
  ])('runs with %s in the place of its code, and saves its own', (_, wrong) => {
    const listeners = exits();
    const cache = cacheFor('digest', 'coap', directory);
    writeCode(cache, wrong());
    expect((runBundle(bundle(), cache) as Bundle).sum(1, 2)).toBe(3);
    listeners.pop()!(0);
    expect(readCode(cache)!.length).toBeGreaterThan(100);
  });

  /** Saves the code of a bundle, and returns its file. */
  const saved = (listeners: ((code: number) => void)[], cache = cacheFor('digest', 'coap', directory)) => {
    runBundle(bundle(), cache);
    listeners.pop()!(0);
    return cache.file;
  };

  test.each<[string, (content: Buffer, others: Buffer) => Buffer]>([
    ['a first quarter of zeros', (content) => content.fill(0, 0, content.length >> 2)],
    ['a second half of zeros', (content) => content.fill(0, content.length >> 1)],
    ['a cut', (content) => content.subarray(0, content.length >> 1)],
    ['no content', () => Buffer.alloc(0)],
    ['the code of another command', (_, others) => others],
  ])('with %s in its file runs without it, and saves its own', (_, damage) => {
    const listeners = exits();
    const cache = cacheFor('digest', 'coap', directory);
    const others = readFileSync(saved(listeners, cacheFor('digest', 'iam', directory)));
    const content = readFileSync(saved(listeners));
    writeFileSync(cache.file, damage(Buffer.from(content), others));
    expect(readCode(cache)).toBeUndefined();
    saved(listeners);
    expect(readCode(cache)).toHaveLength(content.length - 32);
  });

  test('does not use its code with one bit flipped, at any of 40 places', () => {
    const cache = cacheFor('digest', 'coap', directory);
    const content = readFileSync(saved(exits()));
    for (let place = 0; place < 40; place++) {
      writeFileSync(cache.file, flipped(Buffer.from(content), place));
      expect(readCode(cache), `place ${place}`).toBeUndefined();
    }
  });

  test('that ended at once with saved code runs without it, and saves its own', () => {
    const listeners = exits();
    const cache = cacheFor('digest', 'coap', directory);
    writeFileSync(`${saved(listeners)}.${ENDED}.began`, '');
    runBundle(bundle(), cache);
    expect(readdirSync(directory)).toEqual([]);
    listeners.pop()!(0);
    expect(readdirSync(directory)).toEqual([expect.not.stringContaining('began')]);
  });

  test('that still runs with saved code leaves it to others', () => {
    const listeners = exits();
    const file = saved(listeners);
    writeFileSync(`${file}.${process.ppid}.began`, '');
    runBundle(bundle(), cacheFor('digest', 'coap', directory));
    expect(readdirSync(directory)).toHaveLength(3);
    listeners.pop()!(1);
    expect(readdirSync(directory)).toHaveLength(2);
  });

  test('runs without it where the marks of other runs cannot be listed', () => {
    const listeners = exits();
    saved(listeners);
    const list = vi.spyOn(fs, 'readdirSync').mockImplementation(() => {
      throw Object.assign(new Error('permission denied'), { code: 'EACCES' });
    });
    syncBuiltinESMExports();
    expect((runBundle(bundle(), cacheFor('digest', 'coap', directory)) as Bundle).sum(1, 2)).toBe(3);
    list.mockRestore();
    syncBuiltinESMExports();
    expect(readdirSync(directory)).toHaveLength(1);
  });

  test('that has run with saved code for 2 s has no mark, so that killing it proves nothing', () => {
    vi.useFakeTimers({ toFake: ['setTimeout'] });
    const listeners = exits();
    saved(listeners);
    runBundle(bundle(), cacheFor('digest', 'coap', directory));
    vi.advanceTimersByTime(1_999);
    expect(readdirSync(directory)).toHaveLength(2);
    vi.advanceTimersByTime(1);
    expect(readdirSync(directory)).toHaveLength(1);
    vi.useRealTimers();
  });

  test('saves nothing without a cache', () => {
    const listeners = exits();
    runBundle(bundle(), undefined);
    expect(listeners).toEqual([]);
  });
});
