/**
 * What neither a spelling checker nor the formatter sees in a line: comments of 120 columns at most in code, phrases of
 * several words (cspell.jsonc refuses single ones), tables without a delimiter row (markdownlint takes them for text),
 * and names of documents, which must be here.
 */
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { root, textOf } from './imports.ts';

/** Phrases without a right use, each followed by what to write. */
const PHRASES: Readonly<Record<string, RegExp>> = {
  'the actor in place of "who"': /\b(that|to|for|of|by|with|from|than|as|and|or|if|when) who\b/,
  'no longer': /\bno more\b(?=[.,;:)]|$)/,
  switches: /\b(go|goes|went|gone) over to\b/,
  'continues, resumes': /\b(go|goes|went|gone|going) on\b/,
  "our own, the peer's": /\bof (ours|theirs)\b(?! ===)/,
  'the number, or its name': /\bso many\b/,
  failover: /\bhalf[- ]dead\b/,
  'anti-amplification limit': /\b3 × limit\b/,
  'path MTU discovery': /\bsize search\b/,
  'does not apply': /\bhas (no|a) part in\b/,
  fails: /\bcomes? to nothing\b/,
  'what the document says: it is not in this repository':
    /\binterface\.md\b|\breference-behaviou?r\b|\breference (system|SDK|platform|§)|\(reference (§|\d)|\bspecification §|\bthe reference(['’]s)?(?= (does|has|have|takes|answers|refuses|documents|word|order|wrappers|client|server|device|allows|names)\b|[,;.)])/,
};
const OWN = 'test/policy/lines.test.ts';
const FOLDERS = 'core-as bindings protocol platform runtime testing device client server cli bench test docs'.split(' ');
const KINDS = /\.(md|mjs|ts|jsonc?|c|grit)$/;
/** Written by a program, or the words of others. */
const FOREIGN =
  /node_modules\/|package-lock\.json$|^bench\/results\/|^test\/(conformance\/specification\.json|core-as\/aead\/rfc8439\.ts)$|\.generated\./;

const files = ['.', ...FOLDERS]
  .flatMap((folder) => readdirSync(join(root, folder), { recursive: folder !== '.' }).map((name) => join(folder, String(name))))
  .filter((file) => KINDS.test(file) && !FOREIGN.test(file) && file !== OWN);
const texts = [...files, '.ci/run'].map((file) => ({ file, text: textOf(file) }));

/** Places that a pattern matches, as `file:line: match`. */
function places(pattern: RegExp, among = texts): string[] {
  const everywhere = new RegExp(pattern, 'gim');
  return among.flatMap(({ file, text }) =>
    [...text.matchAll(everywhere)].map((match) => `${file}:${text.slice(0, match.index).split('\n').length}: ${match[0]}`),
  );
}

it.each(Object.entries(PHRASES))('say %s', (_, pattern) => {
  expect(places(pattern)).toEqual([]);
});

it('of comments have 120 columns at most', () => {
  const wide = /^(?=[ \t]*(\/\/|\/?\*|# ))(?!.*(https?:\/\/\S{60}|biome-ignore)).{121,}$/;
  const code = texts.filter(({ file }) => !file.endsWith('.md'));
  expect(places(wide, code)).toEqual([]);
});

it('of tables begin with a header and a delimiter row', () => {
  const markdown = texts.filter(({ file }) => file.endsWith('.md'));
  expect(places(/(?<!^ {0,3}\|.*\n)^ {0,3}\|.*\n(?! {0,3}\|[ :|-]+\|$)/, markdown)).toEqual([]);
});

it('name documents that exist', () => {
  // What a run writes below build/ is not there before it.
  const name = /(?<![\w/.-])(?!build\/)(?:[\w-]+\/)*[\w-]+\.md\b/;
  const missing = places(name).filter((place) => {
    const document = place.replace(/^.*: /, '');
    return !['', 'docs/', 'docs/notebook/'].some((folder) => existsSync(join(root, folder, document)));
  });
  expect(missing).toEqual([]);
});
