/**
 * The matrix of direct paths: client × device by kind of NAT, the expectation for each cell, and the result of its
 * scenes.
 */
import type { NotDirectCode, PathClass } from '../../protocol/rendezvous/index.ts';
import { percentile } from '../report.ts';
import { type NatKind, natKinds } from './kinds.ts';
import { runScene, type SceneOptions, type SceneResult } from './scene.ts';

export interface Cell {
  readonly client: NatKind;
  readonly device: NatKind;
}

export const cells: readonly Cell[] = natKinds.flatMap((client) => natKinds.map((device) => ({ client, device })));

/** ms since the connection was established; a scene without a direct path counts as Infinity. */
export interface Times {
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
  readonly max: number;
}

export interface CellResult {
  readonly name: string;
  /** Scenes that ended direct, 0 to 1. */
  readonly share: number;
  readonly times: Times;
  /** Path classes of the direct scenes, and reasons of the relayed ones. */
  readonly over: ReadonlySet<PathClass>;
  readonly reasons: ReadonlySet<NotDirectCode>;
  /** Maximum of the rendezvous's bytes on the relay, among scenes that ended direct. */
  readonly relayed: number;
}

/** The expectation for a cell. */
export interface Expectation {
  /** Minimum and maximum share. */
  readonly atLeast?: number;
  readonly atMost?: number;
  /** Upper limits, ms. */
  readonly times?: Partial<Times>;
}

export function nameOf({ client, device }: Cell): string {
  return `${client} × ${device}`;
}

/** Returns the code for why no attempt in the cell succeeds (docs/paths.md). */
export function reasonOf({ client, device }: Cell): string {
  const kinds = [client, device];
  if (!kinds.includes('blocked')) return 'BOTH_RANDOM';
  return kinds.includes('open') ? 'UDP_BLOCKED' : 'NO_ANSWER';
}

/** Options of a cell's scenes besides the seed. */
export type Burden = Pick<SceneOptions, 'foreign' | 'loss'>;

/** Returns the expectation for a cell. @param foreign flows a second of other hosts behind each sequential NAT */
export function expected({ client, device }: Cell, foreign = 0): Expectation {
  const kinds = [client, device];
  const others = (kind: NatKind): NatKind => kinds[1 - kinds.indexOf(kind)]!;
  if (kinds.includes('blocked')) return { atMost: 0 };
  if (kinds.includes('random')) {
    const other = others('random');
    // Neither port can be guessed: a probable match takes 65,000 mappings.
    if (other === 'random' || other === 'sequential') return { atMost: 0 };
    if (PORT_FILTERS.has(other)) return { atLeast: 0.95, times: { p50: 4_000 } };
  }
  if (kinds.includes('sequential')) return foreign > 0 ? { atLeast: 0.9 } : { atLeast: 1, times: { p99: 3_000 } };
  return { atLeast: 1, times: { max: 1_000 } };
}

/**
 * Returns the unmet expectations of a cell, one line each.
 * @param isSample the scenes are too few for percentiles that depend on chance
 */
export function shortfalls(cell: Cell, { share, times }: CellResult, foreign = 0, isSample = false): string[] {
  const { atLeast = 0, atMost = 1, times: limits = {} } = expected(cell, foreign);
  const missed = share < atLeast ? [`${share} direct, not ${atLeast}`] : share > atMost ? [`${share} direct, not relayed`] : [];
  const isLuck = atLeast < 1;
  const late = Object.entries(limits).filter(([figure, limit]) => times[figure as keyof Times] > limit);
  return [...missed, ...(isSample && isLuck ? [] : late.map(([figure, limit]) => `${figure} above ${limit} ms`))];
}

/** Kinds from behind which only the sprayed stage reaches a random NAT. */
const PORT_FILTERS: ReadonlySet<NatKind> = new Set<NatKind>(['port', 'double', 'v6-firewall']);

/** Runs the scenes of a cell. */
export async function tryCell(cell: Cell, seeds: readonly number[], burden: Burden = {}): Promise<CellResult> {
  const results: SceneResult[] = [];
  for (const seed of seeds) {
    results.push(await runScene({ ...cell, ...burden, seed }));
    // The target of a new WeakRef is kept until the event loop turns, and no scene lets it turn.
    await new Promise((resolve) => setImmediate(resolve));
  }
  const direct = results.filter(({ time }) => time !== null);
  const times = results.map(({ time }) => time ?? Number.POSITIVE_INFINITY);
  const over = direct.map(({ report }) => report.paths.find(({ active }) => active)?.over ?? 'relay');
  return {
    name: nameOf(cell),
    share: direct.length / results.length,
    times: { p50: percentile(times, 50), p95: percentile(times, 95), p99: percentile(times, 99), max: Math.max(...times) },
    over: new Set(over),
    reasons: new Set(results.flatMap(({ why }) => why ?? [])),
    relayed: Math.max(0, ...direct.map(({ relayed }) => relayed)),
  };
}
