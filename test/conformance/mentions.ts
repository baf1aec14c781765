/**
 * Determines whether a test uses a symbol, from the text of the test: its own lines, and the parts of its file
 * (functions, tables, hooks) and of imported tables that it uses. The formatter's indentation shows where each begins
 * and ends.
 */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { FoundSymbol } from './symbols.ts';

const TEST = /^\s*(?:test|it)\b(?!\.(?:skip|todo)\()/;

/** A named part of a file; hooks have no name and count for every test. */
interface Block {
  readonly name: string;
  readonly text: string;
}

/** The text that each test of that title runs, without comments; empty when the file has no such test, or skips it. */
export function testTexts(file: string, title: string): string[] {
  const lines = linesOf(file);
  const quoted = [`'${title.replace(/'/g, "\\'")}'`, `"${title}"`, `\`${title}\``];
  const blocks = [...blocksOf(lines), ...importedTables(file, lines)];
  return lines.flatMap((line, at) => {
    if (!quoted.some((text) => line.includes(text)) || /^\s*describe\b/.test(line)) return [];
    const begin = lines.findLastIndex((each, index) => index <= at && TEST.test(each));
    if (begin < 0 || blockEnd(lines, begin) < at) return [];
    return [withUsed(blocks, [...tablesAround(lines, begin), ...lines.slice(begin, blockEnd(lines, begin, at) + 1)].join('\n'))];
  });
}

/** Whether the text uses the symbol in the form that its kind requires. */
export function mentions(text: string, { member, use }: FoundSymbol): boolean {
  if (use === 'endpoint') return mentionsEndpoint(text, member);
  const pattern = { method: `\\.${member}\\(`, function: `\\b${member}\\b(?=[(,)])`, word: `\\b${member}\\b` }[use];
  return new RegExp(pattern).test(text);
}

/** Method and path, as one text or two; a `{name}` is any segment, `*` too. */
function mentionsEndpoint(text: string, endpoint: string): boolean {
  const [method = '', path = ''] = endpoint.split(' ');
  const pattern = path.replace(/\{\w+\}|:\w+|\*/g, '[^/\'"`\\s]+');
  return new RegExp(`\\b${method}\\b`).test(text) && new RegExp(`['"\` ]${pattern}['"\`]`).test(text);
}

function linesOf(file: string): string[] {
  const text = readFileSync(file, 'utf8').replace(/\/\*[\s\S]*?\*\//g, (comment) => comment.replace(/[^\n]/g, ''));
  return text.replace(/(^|\s)\/\/.*$/gm, '$1').split('\n');
}

function blocksOf(lines: readonly string[]): Block[] {
  return lines.flatMap((line, begin) => {
    const head = /^\s*(?:export )?(?:async )?(?:function|const|class) (\w+)|^\s*(before(?:Each|All))\(/.exec(line);
    return head === null ? [] : [{ name: head[1] ?? '', text: lines.slice(begin, blockEnd(lines, begin) + 1).join('\n') }];
  });
}

/** The constants that this file imports from other test files, with all that they use. */
function importedTables(file: string, lines: readonly string[]): Block[] {
  return [...lines.join('\n').matchAll(/^import {([^}]*)} from '(\.\/[^']+)'/gm)].flatMap(([, names = '', from = '']) => {
    const source = join(dirname(file), from);
    if (!existsSync(source)) return [];
    const tables = blocksOf(linesOf(source)).filter(({ text }) => /^(?:export )?const \w+/.test(text));
    const imported = names.split(',').map((name) => name.trim());
    return tables.filter(({ name }) => imported.includes(name)).map(({ name, text }) => ({ name, text: withUsed(tables, text) }));
  });
}

/** The heads of the `describe.each` blocks around a line. */
function tablesAround(lines: readonly string[], at: number): string[] {
  const indentOf = (line: string) => line.length - line.trimStart().length;
  let indent = indentOf(lines[at] ?? '');
  const heads: string[] = [];
  for (const line of lines.slice(0, at).reverse()) {
    if (line === '' || indentOf(line) >= indent) continue;
    indent = indentOf(line);
    if (/^\s*describe\.each\(/.test(line)) heads.push(line);
  }
  return heads;
}

/** Last line of a block that begins at `begin`, and does not end before `from`. */
function blockEnd(lines: readonly string[], begin: number, from = begin): number {
  const indent = /^\s*/.exec(lines[begin] ?? '')?.[0] ?? '';
  if (from === begin && /[;,]$/.test(lines[begin] ?? '')) return begin;
  const end = lines.findIndex((line, index) => index > from && line.startsWith(indent) && /^[})\]]/.test(line.slice(indent.length)));
  return end < 0 ? lines.length - 1 : end;
}

/** The text with the blocks that it uses, to any depth. */
function withUsed(blocks: readonly Block[], text: string): string {
  let whole = text;
  for (;;) {
    const used = blocks.filter(
      (block) => !whole.includes(block.text) && (block.name === '' || new RegExp(`\\b${block.name}\\b`).test(whole)),
    );
    if (used.length === 0) return whole;
    whole = [whole, ...used.map((block) => block.text)].join('\n');
  }
}
