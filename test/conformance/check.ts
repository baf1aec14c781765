/**
 * Checks the lists against the build and the tests. A row is done when its symbol exists, its test uses it and goes
 * through its surface, and no other row of its surface claims the same symbol; prove/ checks whether the test would
 * notice its absence.
 *
 * An alias names a symbol that is done on its surface, and a test of its own that uses it, which prove/ reads, too.
 * Only `…Async` needs none: it is an alias of the operation of that name, which returns a promise.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type DoneEntry, isDone, KINDS, type Kind, type ListRow, listRows, type OtherEntry, readLists } from './list.ts';
import { mentions, testTexts } from './mentions.ts';
import { Surfaces } from './surface.ts';
import { Symbols } from './symbols.ts';

export type State = 'done' | 'alias' | 'not applicable' | 'missing';
export const STATES: readonly State[] = ['done', 'alias', 'not applicable', 'missing'];

export interface Row extends Omit<ListRow, 'entry'> {
  /** Empty where none is known; so is `test`. */
  readonly symbol: string;
  readonly test: string;
  readonly where: readonly string[];
  readonly path: string;
  readonly state: State;
  /** Why it is not done. */
  readonly reason?: string;
  /** Missing, and listed as such. */
  readonly known?: true;
}

type CheckedClaim = Pick<DoneEntry, 'symbol' | 'test' | 'where'>;

/** Kinds that are replaced where they pass through an operation. */
const PASSING: readonly Kind[] = ['event', 'option', 'field', 'endpoint'];

/** Every row of the lists below `root`, with its state. */
export async function checkConformance(root: string): Promise<Row[]> {
  const { specification, entries } = readLists(root);
  return checkRows(root, listRows(specification, entries));
}

export async function checkRows(root: string, rows: readonly ListRow[]): Promise<Row[]> {
  const symbols = new Symbols(join(root, 'dist'));
  const claimed = new Set<string>();
  const obstacles = new Map<string, Promise<string | null>>();
  const surfaces = new Surfaces(root);
  const obstacleOf = async ({ kind, surface }: Pick<ListRow, 'kind' | 'surface'>, claim: CheckedClaim): Promise<string | null> => {
    const key = JSON.stringify([kind, claim.symbol, claim.test, claim.where]);
    const known = obstacles.get(key) ?? obstacle(root, symbols, kind, claim);
    obstacles.set(key, known);
    const [file = ''] = claim.test.split(' > ');
    // The type checker proves those of types, which need no import of values.
    const isBelow = kind !== 'type' && !surfaces.has(surface, file);
    return (await known) ?? (isBelow ? `the test does not go through the surface ${surface}` : null);
  };
  const stated = async (row: ListRow): Promise<Row> => {
    const { entry, ...name } = row;
    const nothing = { ...name, symbol: '', test: '', where: [], path: '' };
    if (entry === undefined) return { ...nothing, state: 'missing', reason: 'nothing is named for it' };
    if (!isDone(entry)) return { ...nothing, symbol: entry.symbol ?? '', test: entry.test ?? '', ...stateOf(entry) };
    const { symbol, test, where = [], path = '' } = entry;
    const named = { ...name, symbol, test, where, path };
    const claim = [row.surface, row.kind === 'type' ? 'type' : 'value', symbol, path].join(' ');
    const reason = claimed.has(claim) ? 'another row of this surface claims the symbol' : await obstacleOf(row, entry);
    claimed.add(claim);
    return reason === null ? { ...named, state: 'done' } : { ...named, state: 'missing', reason };
  };
  const checked: Row[] = [];
  for (const row of rows) checked.push(await stated(row));
  return Promise.all(checked.map((row) => (row.state === 'alias' ? withTarget(symbols, checked, row, obstacleOf) : row)));
}

/** The rows that are missing without being listed as missing. */
export function missingRows(rows: readonly Row[]): Row[] {
  return rows.filter(({ state, known }) => state === 'missing' && known === undefined);
}

function stateOf({ state, reason }: OtherEntry): Pick<Row, 'state' | 'reason' | 'known'> {
  if (reason.trim() === '') return { state: 'missing', reason: 'no reason is given' };
  return state === 'missing' ? { state, reason, known: true } : { state, reason };
}

/** The alias with the kind of its target, as which it is proved, or marked as missing. */
async function withTarget(
  symbols: Symbols,
  rows: readonly Row[],
  alias: Row,
  obstacleOf: (row: Row, claim: CheckedClaim) => Promise<string | null>,
): Promise<Row> {
  const { symbol, test } = alias;
  const missing = (reason: string): Row => ({ ...alias, state: 'missing', reason });
  const targets = rows.filter((row) => row.state === 'done' && row.surface === alias.surface && row.symbol === symbol);
  const [target] = targets;
  if (target === undefined) return missing(`${symbol} is not done on this surface`);
  if (test === '') {
    const isOfItsName = targets.some(({ group, name }) => group === alias.group && `${name}Async` === alias.name);
    if (!isOfItsName) return missing('no test shows what it stands for');
    return symbols.returnsPromise(symbol) ? alias : missing(`${symbol} returns no promise`);
  }
  const { kind, where, path } = target;
  const reason = await obstacleOf({ ...alias, kind }, { symbol, test, where });
  return reason === null ? { ...alias, kind, where, path } : missing(reason);
}

/** Returns what is wrong with an implementation, null when nothing is. */
async function obstacle(
  root: string,
  symbols: Symbols,
  kind: Kind,
  claim: Pick<DoneEntry, 'symbol' | 'test' | 'where'>,
): Promise<string | null> {
  const { symbol, test, where = [] } = claim;
  if (!KINDS.includes(kind)) return `no kind ${kind}`;
  const found = await symbols.find(symbol);
  if (typeof found === 'string') return found;
  if (PASSING.includes(kind) && where.length === 0) return `nothing says where the ${kind} passes`;
  for (const each of where) {
    const place = await symbols.find(each);
    if (typeof place === 'string') return place;
  }
  const [file = '', title = ''] = test.split(' > ');
  if (!/^test\/.+\.test\.ts$/.test(file) || !existsSync(join(root, file))) return `no test file ${file}`;
  const texts = testTexts(join(root, file), title);
  if (texts.length === 0) return `no test ${JSON.stringify(title)} in ${file}`;
  if (kind === 'type' && !texts.some((text) => /\bexpectTypeOf\b/.test(text))) return 'the test says nothing about types';
  return texts.some((text) => mentions(text, found)) ? null : `the test does not use ${found.member}`;
}
