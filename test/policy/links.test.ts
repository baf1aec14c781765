/**
 * Links between the documents of the repository: each leads to a file, and to a heading where it names one;
 * docs/README.md leads to each page below docs/. A path of a document in code, as `docs/paths.md`, is a link as well.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
/** Folders without documents of this repository. */
const FOREIGN = new Set(['node_modules', 'dist', 'build', 'data']);
const INDEX = 'docs/README.md';
/** Inline, with or without a title; a reference's definition; HTML. */
const LINK = /\]\(\s*<?([^)\s>]+)>?(?:\s+["'(][^)]*)?\)|^ {0,3}\[[^\]]+\]:\s*<?([^\s>]+)|\b(?:href|src)="([^"]+)"/gm;
/** A path from the root, in code. */
const CODE_PATH =
  /`((?:core-as|bindings|protocol|platform|runtime|testing|device|client|server|cli|test|bench|docs)\/[\w./-]+\.(?:md|ts|mjs|json|c)|[A-Z]+\.md)(?:#([\w-]+))?`/g;

const documents = documentsBelow('');
const pages = documents.filter((path) => path.startsWith('docs/') && path !== INDEX);

describe('documents', () => {
  it('are found', () => {
    expect(documents).toEqual(expect.arrayContaining(['README.md', INDEX, 'bench/README.md']));
    expect(pages.length).toBeGreaterThan(14);
  });

  it.each(documents)('%s: each link leads somewhere', (path) => {
    expect(linksOf(path).filter(({ target, anchor }) => !leads(target, anchor))).toEqual([]);
  });

  it(`${INDEX} leads to each page`, () => {
    const linked = new Set(linksOf(INDEX).map(({ target }) => target));
    expect(pages.filter((page) => !linked.has(page))).toEqual([]);
  });

  it('README.md leads to the index', () => {
    expect(linksOf('README.md').map(({ target }) => target)).toContain(INDEX);
  });
});

/** A link within the repository: path from the root, and the heading, '' for none. */
interface Link {
  readonly target: string;
  readonly anchor: string;
}

function linksOf(path: string): Link[] {
  const prose = withoutFences(readFileSync(join(root, path), 'utf8'));
  const inCode = [...prose.matchAll(CODE_PATH)].map(([, target = '', anchor = '']) => ({ target, anchor }));
  const links = [...prose.replaceAll(/`[^`\n]*`/g, '').matchAll(LINK)]
    .map(([, inline, reference, html]) => inline ?? reference ?? html ?? '')
    .filter((link) => !/^[a-z]+:/.test(link))
    .map((link) => {
      const [file = '', anchor = ''] = link.split('#');
      return { target: file === '' ? path : join(dirname(path), file), anchor };
    });
  return [...inCode, ...links];
}

function leads(target: string, anchor: string): boolean {
  if (!existsSync(join(root, target))) return false;
  return anchor === '' || anchorsOf(target).has(anchor);
}

/** Anchors of headings, as GitHub builds them. */
function anchorsOf(path: string): ReadonlySet<string> {
  const prose = withoutFences(readFileSync(join(root, path), 'utf8'));
  const anchors = new Set<string>();
  for (const [, heading = ''] of prose.matchAll(/^#+ (.*)$/gm)) {
    const plain = heading.toLowerCase().replaceAll(/[^\p{L}\p{N}\s_-]/gu, '');
    const anchor = plain.trim().replaceAll(/\s/g, '-');
    let unique = anchor;
    for (let count = 1; anchors.has(unique); count++) unique = `${anchor}-${count}`;
    anchors.add(unique);
  }
  return anchors;
}

function withoutFences(markdown: string): string {
  return markdown.replaceAll(/^```[\s\S]*?^```$/gm, '');
}

/** Markdown files below a folder, as paths from the root. */
function documentsBelow(folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return FOREIGN.has(entry.name) || entry.name.startsWith('.') ? [] : documentsBelow(path);
    return entry.name.endsWith('.md') ? [path] : [];
  });
}
