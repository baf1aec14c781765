/** `docs/notebook/` has dated findings, newest first, and its index names every page. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it, test } from 'vitest';

const folder = new URL('../../docs/notebook/', import.meta.url);
const read = (page: string) => readFileSync(new URL(page, folder), 'utf8');
const pages = readdirSync(folder).filter((file) => file !== 'README.md');

test('the index names every page', () => {
  const named = [...read('README.md').matchAll(/\]\((\w+\.md)\)/g)].map(([, page]) => page as string);
  expect(named.toSorted()).toEqual(pages.toSorted());
});

describe.each(pages)('%s', (page) => {
  const headings = [...read(page).matchAll(/^## (.*)$/gm)].map(([, text]) => text as string);

  it('has entries with a date and a finding, newest first', () => {
    expect(headings.length).toBeGreaterThan(0);
    expect(headings.filter((text) => !/^\d{4}-\d\d-\d\d \S/.test(text))).toEqual([]);
    const dates = headings.map((text) => text.slice(0, 10));
    expect(dates).toEqual(dates.toSorted().reverse());
  });

  it('names only files that exist', () => {
    const links = [...read(page).matchAll(/\]\(([^)#:]+)\)/g)].map(([, path]) => new URL(path as string, folder));
    const named = [...read(page).matchAll(/`((?:core-as|platform|runtime|testing|protocol|cli|test|bench|docs)\/[\w./-]+\.\w+)`/g)];
    const files = named.map(([, path]) => new URL(`../../${path}`, folder));
    expect([...links, ...files].filter((file) => !existsSync(file)).map(String)).toEqual([]);
  });
});
