/** Files are replaced as a whole, even when the process is killed meanwhile. */
import { appendFileSync } from 'node:fs';
import { chmod, chown, mkdir, readdir, readFile, stat, symlink, truncate, utimes, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { build } from 'esbuild';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import {
  createFile,
  makeDirectory,
  prepareDirectory,
  readFileIfPresent,
  readJson,
  replaceFile,
  replaceJson,
} from '../../../platform/node/files.ts';
import { readRegularFile, refuseForeign } from '../../../platform/node/own-file.ts';
import { TestProcess } from '../../support/process.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

let directory = '';
const at = (name: string) => join(directory, name);

beforeEach(() => {
  directory = temporaryDirectory();
});
afterEach(() => void vi.restoreAllMocks());

async function shared(path: string): Promise<void> {
  await writeFile(path, '');
  await chmod(path, 0o602);
}

async function lengthened(path: string, length: number): Promise<void> {
  await writeFile(path, '', { mode: 0o600 });
  await truncate(path, length);
}

describe('replaceFile', () => {
  it('creates and replaces, for this user only, and leaves nothing beside it', async () => {
    await replaceFile(at('state'), 'first and longer');
    await replaceFile(at('state'), Uint8Array.of(104, 105));
    expect(await readFile(at('state'), 'utf8')).toBe('hi');
    expect((await stat(at('state'))).mode & 0o777).toBe(0o600);
    await replaceFile(at('state'), 'open', { mode: 0o644 });
    expect((await stat(at('state'))).mode & 0o777).toBe(0o644);
    expect(await readdir(directory)).toEqual(['state']);
  });

  it('shows a reader the old content or the new, never a part', { tags: ['slow'] }, async () => {
    const contents = ['a', 'b'].map((letter) => letter.repeat(300_000));
    await replaceFile(at('state'), contents[0]!);
    let writing = true;
    const seen = new Set<string>();
    const reader = (async () => {
      while (writing) seen.add(await readFile(at('state'), 'utf8'));
    })();
    for (let i = 0; i < 20; i++) await replaceFile(at('state'), contents[i % 2]!);
    writing = false;
    await reader;
    for (const content of seen) expect(contents.includes(content)).toBe(true);
  });

  it('keeps the old content when it fails, and reports why in one line', async () => {
    await expect(replaceFile(join(directory, 'none', 'state'), 'x')).rejects.toMatchObject({
      code: 'FAILED',
      message: `cannot write ${join(directory, 'none', 'state')}: no such directory`,
    });
    await mkdir(at('taken'));
    await expect(replaceFile(at('taken'), 'x')).rejects.toMatchObject({ code: 'FAILED' });
    expect(await readdir(directory)).toEqual(['taken']);
  });

  it('survives a process killed between two bytes', { tags: ['slow'] }, async () => {
    const files = new URL('../../../platform/node/files.ts', import.meta.url).pathname;
    const program = join(directory, 'writer.mjs');
    await buildWriter(files, program);
    await mkdir(at('data'));
    const path = join(directory, 'data', 'state');
    let last = -1;
    for (const writes of [3, 7, 12]) {
      const child = new TestProcess(process.execPath, [program, path, String(last + 1)]);
      let acknowledged = last;
      // one line for each write that is on the disk; killed in the middle of a later one
      for await (const line of child.eachLine()) {
        acknowledged = Number(line);
        if (acknowledged >= last + writes) child.kill();
      }
      expect(await child.ended).toMatchObject({ code: null, signal: 'SIGKILL' });
      const state = (await readJson(path)) as { n: number; fill: string };
      expect(state.fill).toBe('x'.repeat(300_000));
      expect(state.n).toBeGreaterThanOrEqual(acknowledged);
      last = state.n;
      // A minute later the temporary file of the killed write is stale.
      for (const name of await readdir(at('data'))) await utimes(at(`data/${name}`), 0, 0);
      await prepareDirectory(at('data'));
      expect(await readdir(at('data'))).toEqual(['state']);
    }
  });
});

/** A program that replaces a file forever and prints the number of each acknowledged write. */
async function buildWriter(files: string, outfile: string): Promise<void> {
  const contents = `
    import { writeSync } from 'node:fs';
    import { replaceJson } from ${JSON.stringify(files)};
    for (let n = Number(process.argv[3]); ; n++) {
      await replaceJson(process.argv[2], { n, fill: 'x'.repeat(300_000) });
      writeSync(1, n + '\\n');
    }`;
  await build({ stdin: { contents, resolveDir: '.' }, bundle: true, platform: 'node', format: 'esm', outfile, logLevel: 'error' });
}

describe('reading', () => {
  it('returns undefined for a file that does not exist', async () => {
    expect(await readFileIfPresent(at('none'))).toBeUndefined();
    expect(await readJson(at('none'))).toBeUndefined();
  });

  it('reads back what was written, readable for a person', async () => {
    await replaceJson(at('state.json'), { name: 'Türe', list: [1] });
    expect(await readJson(at('state.json'))).toEqual({ name: 'Türe', list: [1] });
    expect(await readFile(at('state.json'), 'utf8')).toBe('{\n  "name": "Türe",\n  "list": [\n    1\n  ]\n}\n');
  });

  it.each<[string | Uint8Array, string]>([
    ['{', ' line 1 column 2: not valid JSON: it ends here, a name in double quotes is expected'],
    ['', ' line 1 column 1: not valid JSON: it ends here, a value is expected'],
    ['{"a":\n 1}}', ' line 2 column 4: not valid JSON: nothing more is expected'],
    [Uint8Array.of(0x22, 0xff, 0x22), ' is not UTF-8'],
  ])('reports where a file is not JSON: %j', async (content, problem) => {
    await writeFile(at('bad.json'), content);
    await expect(readJson(at('bad.json'))).rejects.toMatchObject({
      code: 'PARSE',
      message: `${at('bad.json')}${problem}: repair it, or move it away to start afresh`,
    });
  });

  it('reports what cannot be read', async () => {
    await expect(readJson(directory)).rejects.toMatchObject({ code: 'FAILED', message: `cannot read ${directory}: it is a directory` });
  });

  const listener = createServer();
  it.each<[string, (path: string) => unknown, string]>([
    ['a FIFO', (path) => new TestProcess('mkfifo', [path]).succeeded(), 'it is not a regular file: remove it'],
    ['a socket', (path) => new Promise<void>((resolve) => listener.listen(path, resolve)), 'it is a socket or a device: remove it'],
    ['a link to a device', (path) => symlink('/dev/zero', path), 'it is a link: put the file itself there'],
    ['a link to nothing', (path) => symlink('nothing', path), 'it is a link: put the file itself there'],
    ['a file that is too long', (path) => lengthened(path, (16 << 20) + 1), 'it is longer than 16777216 bytes: remove it'],
    ['a file of all users', shared, 'every user may write to it: chmod o-w it, or use another directory'],
  ])('refuses %s at once', async (_, make, problem) => {
    const path = at('known.json');
    await make(path);
    await expect(readFileIfPresent(path)).rejects.toMatchObject({ code: 'FAILED', message: `cannot read ${path}: ${problem}` });
    listener.close();
  });

  it('reads no more than the file had when it was opened', async () => {
    for (const content of ['', 'four']) {
      await writeFile(at('grows'), content);
      const read = readRegularFile(at('grows'), 1_024, () => appendFileSync(at('grows'), 'more'));
      expect(String(read)).toBe(content);
    }
  });

  it('reads the longest file', async () => {
    await lengthened(at('known.json'), 16 << 20);
    expect(await readFileIfPresent(at('known.json'))).toHaveLength(16 << 20);
  });

  it('reads what a person gave, also through a link and in a directory of all users', async () => {
    await writeFile(at('given.json'), '{}');
    await chmod(at('given.json'), 0o666);
    await symlink('given.json', at('link.json'));
    await chmod(directory, 0o777);
    expect(await readJson(at('link.json'), { given: true })).toEqual({});
    expect(await readJson(at('none'), { given: true })).toBeUndefined();
  });

  it('refuses a file in a directory where every user may put one', async () => {
    await replaceFile(at('known.json'), '');
    await chmod(directory, 0o777);
    await expect(readFileIfPresent(at('known.json'))).rejects.toMatchObject({
      code: 'FAILED',
      message: `cannot use directory ${directory}: every user may write to it: chmod o-w it, or use another directory`,
    });
  });
});

describe('makeDirectory', () => {
  it('creates missing directories for this user only, also in several calls at once', async () => {
    const path = join(directory, 'a', 'b', 'c');
    await Promise.all([makeDirectory(path), makeDirectory(path), makeDirectory(join(directory, 'a', 'd'))]);
    for (const made of [path, at('a'), join(directory, 'a', 'd')]) expect((await stat(made)).mode & 0o777).toBe(0o700);
  });

  it.runIf(process.platform === 'linux')('fails where nothing can be created', async () => {
    await expect(makeDirectory('/proc/nothing/here')).rejects.toMatchObject({ code: 'FAILED' });
  });
});

describe('an existing directory', () => {
  it.each([0o777, 0o1777])('with the mode %o is refused', async (mode) => {
    await mkdir(at('state'));
    await chmod(at('state'), mode);
    await expect(prepareDirectory(at('state'))).rejects.toMatchObject({
      code: 'FAILED',
      message: `cannot use directory ${at('state')}: every user may write to it: chmod o-w it, or use another directory`,
    });
  });

  it.runIf(process.getuid?.() === 0)('of another user is refused, as is a file of one', async () => {
    await mkdir(at('state'));
    await writeFile(at('known.json'), '', { mode: 0o600 });
    for (const name of ['state', 'known.json']) await chown(at(name), 12_345, 0);
    const problem = 'it belongs to another user (12345): chown it to yours, or use another directory';
    await expect(prepareDirectory(at('state'))).rejects.toMatchObject({ message: `cannot use directory ${at('state')}: ${problem}` });
    await expect(readFileIfPresent(at('known.json'))).rejects.toMatchObject({ message: `cannot read ${at('known.json')}: ${problem}` });
  });

  it.each([0o700, 0o755, 0o775])('of this user is taken with the mode %o', async (mode) => {
    await mkdir(at('state'));
    await chmod(at('state'), mode);
    await prepareDirectory(at('state'));
  });
});

describe('an entry', () => {
  it.each([
    [1000, 1000, 0o702, 'every user may write to it'],
    [1000, 0, 0o757, 'every user may write to it'],
    [1000, 1001, 0o700, 'it belongs to another user (1001)'],
    [0, 1000, 0o700, 'it belongs to another user (1000)'],
  ])('for user %s of user %s with mode %o is not own: %s', (user, uid, mode, message) => {
    vi.spyOn(process, 'getuid').mockReturnValue(user);
    expect(() => refuseForeign({ uid, mode })).toThrow(message);
  });

  it.each([
    [1000, 1000, 0o700],
    [1000, 1000, 0o775],
    [1000, 0, 0o755],
    [undefined, 0, 0o777],
  ])('for user %s of user %s with mode %o is own', (user, uid, mode) => {
    vi.spyOn(process, 'getuid').mockReturnValue(user as number);
    expect(() => refuseForeign({ uid, mode })).not.toThrow();
  });
});

describe('createFile', () => {
  it('lets one of many concurrent calls succeed, and leaves nothing else behind', async () => {
    const path = join(directory, 'key.pem');
    const made = await Promise.all(Array.from({ length: 20 }, (_, index) => createFile(path, `key ${index}`)));
    expect(made.filter(Boolean)).toHaveLength(1);
    expect(await readFile(path, 'utf8')).toBe(`key ${made.indexOf(true)}`);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect(await readdir(directory)).toEqual(['key.pem']);
  });

  it('reports what is wrong', async () => {
    await expect(createFile(join(directory, 'none', 'key.pem'), '')).rejects.toMatchObject({ code: 'FAILED' });
  });
});

describe('prepareDirectory', () => {
  it('creates it for this user only and removes the leftovers of a crash', async () => {
    const path = join(directory, 'a', 'b');
    await prepareDirectory(path);
    expect((await stat(path)).mode & 0o777).toBe(0o700);
    const old = ['.state.0123456789ab.tmp', 'state', '.hidden', 'x.tmp', '.state.tmp'];
    for (const name of old) {
      await writeFile(join(path, name), '');
      await utimes(join(path, name), 0, 0);
    }
    // One that another process may be writing at this moment.
    await writeFile(join(path, '.state.ba9876543210.tmp'), '');
    await prepareDirectory(path);
    expect((await readdir(path)).sort()).toEqual(['.hidden', '.state.ba9876543210.tmp', '.state.tmp', 'state', 'x.tmp']);
  });

  it('reports what is wrong', async () => {
    await writeFile(at('file'), '');
    await expect(prepareDirectory(at('file'))).rejects.toMatchObject({
      code: 'FAILED',
      message: `cannot use directory ${at('file')}: a file of that name exists already`,
    });
    await expect(prepareDirectory(join(at('file'), 'x'))).rejects.toMatchObject({ code: 'FAILED' });
  });

  it.skipIf(process.getuid?.() === 0)('reports that permission is missing', async () => {
    await mkdir(at('closed'));
    await chmod(at('closed'), 0);
    await expect(prepareDirectory(join(at('closed'), 'x'))).rejects.toMatchObject({
      message: expect.stringContaining('permission denied'),
    });
  });
});
