/** Files are replaced as a whole, even when the process is killed meanwhile. */
import { chmod, mkdir, readdir, readFile, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { build } from 'esbuild';
import { beforeEach, describe, expect, it } from 'vitest';
import {
  createFile,
  makeDirectory,
  prepareDirectory,
  readFileIfPresent,
  readJson,
  replaceFile,
  replaceJson,
} from '../../../transport/node/files.ts';
import { TestProcess } from '../../support/process.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

let directory = '';
const at = (name: string) => join(directory, name);

beforeEach(() => {
  directory = temporaryDirectory();
});

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
    const files = new URL('../../../transport/node/files.ts', import.meta.url).pathname;
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
    if (process.getuid?.() === 0) return;
    await mkdir(at('closed'));
    await chmod(at('closed'), 0);
    await expect(prepareDirectory(join(at('closed'), 'x'))).rejects.toMatchObject({
      message: expect.stringContaining('permission denied'),
    });
  });
});
