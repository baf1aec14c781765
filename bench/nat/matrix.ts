/** The matrix of direct paths: client × device by kind of NAT, what is expected of each cell, and what its scenes gave. */
import type { NotDirectCode, PathClass } from '../../protocol/rendezvous/index.ts';
import { percentile } from '../report.ts';
import { type NatKind, natKinds } from './kinds.ts';
import { runScene, type SceneOptions, type SceneResult } from './scene.ts';

export interface Cell {
  readonly client: NatKind;
  readonly device: NatKind;
}

export const cells: readonly Cell[] = natKinds.flatMap((client) => natKinds.map((device) => ({ client, device })));

/** ms from when the connection was up; a scene that found no direct path counts as Infinity. */
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
  /** Over what the direct ones went, and why the others were relayed. */
  readonly over: ReadonlySet<PathClass>;
  readonly reasons: ReadonlySet<NotDirectCode>;
  /** Most bytes of the rendezvous on the relay of those that ended direct. */
  readonly relayed: number;
}

/** What a cell has to give. */
export interface Expectation {
  /** Least and most share. */
  readonly atLeast?: number;
  readonly atMost?: number;
  /** ms, at most. */
  readonly times?: Partial<Times>;
}

export function nameOf({ client, device }: Cell): string {
  return `${client} × ${device}`;
}

/** What the scenes of a cell have beside its seed. */
export type Burden = Pick<SceneOptions, 'foreign' | 'loss'>;

/** @param foreign flows a second of others behind each sequential NAT */
export function expected({ client, device }: Cell, foreign = 0): Expectation {
  const kinds = [client, device];
  const others = (kind: NatKind): NatKind => kinds[1 - kinds.indexOf(kind)]!;
  if (kinds.includes('blocked')) return { atMost: 0 };
  if (kinds.includes('random')) {
    const other = others('random');
    // Neither port can be guessed: a likely match takes 65,000 mappings.
    if (other === 'random' || other === 'sequential') return { atMost: 0 };
    if (PORT_FILTERS.has(other)) return { atLeast: 0.95, times: { p50: 4_000 } };
  }
  if (kinds.includes('sequential')) return foreign > 0 ? { atLeast: 0.9 } : { atLeast: 1, times: { p99: 3_000 } };
  return { atLeast: 1, times: { max: 1_000 } };
}

/** What a cell did not give, one line each. @param isSample the scenes are too few for percentiles of what depends on luck */
export function shortfalls(cell: Cell, { share, times }: CellResult, foreign = 0, isSample = false): string[] {
  const { atLeast = 0, atMost = 1, times: limits = {} } = expected(cell, foreign);
  const missed = share < atLeast ? [`${share} direct, not ${atLeast}`] : share > atMost ? [`${share} direct, not relayed`] : [];
  const isLuck = atLeast < 1;
  const late = Object.entries(limits).filter(([figure, limit]) => times[figure as keyof Times] > limit);
  return [...missed, ...(isSample && isLuck ? [] : late.map(([figure, limit]) => `${figure} above ${limit} ms`))];
}

/** Only the sprayed stage reaches a random NAT from behind them. */
const PORT_FILTERS: ReadonlySet<NatKind> = new Set<NatKind>(['port', 'double', 'v6-firewall']);

/** Runs the scenes of a cell. */
export async function tryCell(cell: Cell, seeds: readonly number[], burden: Burden = {}): Promise<CellResult> {
  const results: SceneResult[] = [];
  for (const seed of seeds) {
    results.push(await runScene({ ...cell, ...burden, seed }));
    // Whatever a WeakRef was made for is kept until the event loop turns, which no scene lets it do.
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
