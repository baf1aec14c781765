/** Holds the lists against the build and the tests: a row is done when its symbol exists and its test uses it, and never by claim. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type Implementation, isRequired, type ListRow, listRows, readLists } from './list.ts';
import { mentions, testTexts } from './mentions.ts';
import { Symbols } from './symbols.ts';

export interface Row {
  readonly section: string;
  readonly surface: string;
  readonly group: string;
  readonly kind: string;
  readonly name: string;
  /** Empty where none is known, as the test. */
  readonly symbol: string;
  readonly test: string;
  readonly construct?: string;
  readonly state: 'done' | 'missing';
  /** Why it is missing. */
  readonly reason?: string;
}

/** Every row of the lists below `root`, with its state. */
export async function checkConformance(root: string): Promise<Row[]> {
  const { specification, implementations } = readLists(root);
  return checkRows(root, listRows(specification, implementations));
}

export async function checkRows(root: string, rows: readonly ListRow[]): Promise<Row[]> {
  const symbols = new Symbols(join(root, 'dist'));
  const reasons = new Map<Implementation, string | null>();
  const reasonOf = async (implementation: Implementation | undefined): Promise<string | null> => {
    if (implementation === undefined) return 'nothing is named for it';
    if (!reasons.has(implementation)) reasons.set(implementation, await obstacle(root, symbols, implementation));
    return reasons.get(implementation) ?? null;
  };
  const checked: Row[] = [];
  for (const { implementation, ...row } of rows) {
    const { symbol = '', test = '', construct } = implementation ?? {};
    const reason = await reasonOf(implementation);
    const named = { ...row, symbol, test, ...(construct !== undefined && { construct }) };
    checked.push(reason === null ? { ...named, state: 'done' } : { ...named, state: 'missing', reason });
  }
  return checked;
}

/** The rows that have to be there and are not. */
export function missingRows(rows: readonly Row[]): Row[] {
  return rows.filter((row) => row.state === 'missing' && isRequired(row));
}

/** What is wrong with an implementation, null when nothing is. */
async function obstacle(root: string, symbols: Symbols, { symbol, test }: Implementation): Promise<string | null> {
  const found = await symbols.find(symbol);
  if (typeof found === 'string') return found;
  const [file = '', title = ''] = test.split(' > ');
  if (!/^test\/.+\.test\.ts$/.test(file) || !existsSync(join(root, file))) return `no test file ${file}`;
  const texts = testTexts(join(root, file), title);
  if (texts.length === 0) return `no test ${JSON.stringify(title)} in ${file}`;
  return texts.some((text) => mentions(text, found)) ? null : `the test does not use ${found.member}`;
}
