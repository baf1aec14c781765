/** The prose of the repository: the field's words, plain English, 120 columns, and no citation of a document that is not here. */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { root, textOf } from './imports.ts';
import { CITATIONS, PHRASES, type ProseLine, proseOf, refused, tooWide } from './prose.ts';

const FOLDERS = [
  'core-as',
  'bindings',
  'protocol',
  'platform',
  'runtime',
  'testing',
  'device',
  'client',
  'server',
  'cli',
  'bench',
  'test',
  'docs',
];
/** They hold the refused phrases as data. */
const OWN = ['test/policy/prose.ts', 'test/policy/prose.test.ts'];
/** Texts of others: vectors of an RFC, as published. */
const QUOTED = ['test/core-as/aead/rfc8439.ts'];

const KINDS = /\.(md|mjs|ts|jsonc?|c|grit)$/;
/** Not written by a person, or the words of others. */
const FOREIGN = /package-lock\.json$|^bench\/results\/|^test\/conformance\/specification\.json$/;

const files = [...readdirSync(root).filter((name) => KINDS.test(name)), '.ci/run', ...FOLDERS.flatMap(below)].filter(
  (file) => !OWN.includes(file) && !QUOTED.includes(file) && !FOREIGN.test(file) && !file.includes('.generated.'),
);
const prose = files.flatMap((file) => proseOf(file, textOf(file)));

function below(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && KINDS.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name).slice(root.length))
    .filter((file) => !file.includes('node_modules/'));
}

const place = ({ file, line, text }: ProseLine): string => `${file}:${line}: ${text.trim()}`;
const line = (text: string): ProseLine => ({ file: 'example.ts', line: 1, text });

describe('phrases', () => {
  it('have no right use', { tags: ['slow'] }, () => {
    const found = prose.flatMap((each) => {
      const why = refused(each);
      return why === null ? [] : [`${place(each)} (${why})`];
    });
    expect(found).toEqual([]);
  });

  it.each([
    'whoever reads this',
    'nobody else sends',
    'so that who waits for it',
    'it is used no more.',
    'goes over to UDP',
    'the work goes on',
    'a check of ours',
    'counted anew',
    'changed from afar',
    'the device is told',
    'so many ms',
    'a proven address',
    'a half-dead path',
    'the 3 × limit',
    'the size search',
    'it has no part in it',
    'it comes to nothing',
  ])('are refused: %s', (text) => {
    expect(refused(line(text))).not.toBeNull();
  });

  it.each([
    'no more than 64 bytes',
    'tells one device apart from another',
    'a client who signs in',
    'validated paths',
    'reports `told` and `anew`',
    'is gone',
    'for whom the key is kept',
  ])('leave room for: %s', (text) => {
    expect(refused(line(text))).toBeNull();
  });

  it('each refuse an example of their own', () => {
    const texts = [
      'whoever nobody so that who no more. goes over to goes on of ours anew from afar is told so many proven half-dead 3 × limit',
      'size search has no part in comes to nothing',
    ];
    for (const [phrase] of PHRASES)
      expect(
        texts.some((text) => phrase.test(text)),
        String(phrase),
      ).toBe(true);
  });
});

describe('citations', () => {
  it('name no document outside the repository', () => {
    expect(prose.filter(({ text }) => CITATIONS.some((citation) => citation.test(text))).map(place)).toEqual([]);
    for (const text of ['see interface.md', '(reference §1.2)', 'as the reference does', 'the reference, whose', 'specification §2'])
      expect(
        CITATIONS.some((citation) => citation.test(text)),
        text,
      ).toBe(true);
  });

  it('name Markdown files that exist', { tags: ['slow'] }, () => {
    const missing = prose.flatMap((each) =>
      [...each.text.matchAll(/(?<![\w/.-])((?:[\w-]+\/)*[\w-]+\.md)\b/g)]
        .map(([name]) => name)
        .filter((name) => !name.startsWith('build/'))
        .filter((name) => ![name, `docs/${name}`, `docs/notebook/${name}`].some((path) => existsSync(join(root, path))))
        .map((name) => `${name} in ${place(each)}`),
    );
    expect(missing).toEqual([]);
  });
});

describe('columns', () => {
  it('are 120 at most in comments and Markdown', () => {
    expect(files.flatMap((file) => tooWide(file, textOf(file))).map(({ file, line, text }) => `${file}:${line}: ${text.length}`)).toEqual(
      [],
    );
  });

  it('of tables and code are free', () => {
    const wide = 'word '.repeat(30).trim();
    expect(tooWide('a.md', `${wide}\n| ${wide} |\n\`\`\`\n${wide}\n\`\`\``)).toHaveLength(1);
    expect(tooWide('a.ts', `// ${wide}\nconst text = '${wide}';\n * ${wide}`)).toHaveLength(2);
  });
});

it('reads comments, texts, names of tests and Markdown, not code', () => {
  const read = (file: string, source: string): string[] => proseOf(file, source).map(({ text }) => text.trim());
  expect(read('a.ts', "/** One. */\nconst told = 1; // Two.\nit('three words here', () => told);\nconst x = 'word';")).toEqual([
    'One. */',
    'Two.',
    "'three words here'",
  ]);
  expect(read('a.md', 'One.\n```\ncode\n```\nTwo.')).toEqual(['One.', 'Two.']);
});
