/**
 * How often and how fast a relayed connection becomes direct, by the NATs of both ends: the decisions of the rendezvous
 * in the simulator, without an engine and without a handshake (nat/scene.ts). The round trip to the base station, and
 * between the ends, is 50 ms.
 *
 * Each row is a cell, client × device. `ours` is the share that was direct within 15 s. `p50`, `p95`, `p99` and `max`
 * are the ms until then, null for a connection that stayed relayed.
 *
 * With `--foreign N`, other hosts behind each sequential NAT begin N flows a second, which take ports in between. Only
 * cells with such a NAT are run.
 */
import { type Cell, type CellResult, cells, expected, nameOf, tryCell } from './nat/matrix.ts';
import type { Goal, Report, Row } from './report.ts';

const SEEDS = 200;

export interface NatOptions {
  /** Scenes of each cell. Default 200. */
  readonly seeds?: number;
  /** Flows a second of other hosts behind each sequential NAT. Default 0. */
  readonly foreign?: number;
}

export async function run(progress: (step: string) => void, { seeds = SEEDS, foreign = 0 }: NatOptions): Promise<Report> {
  const numbers = Array.from({ length: seeds }, (_, i) => i + 1);
  const chosen = cells.filter(({ client, device }) => foreign === 0 || [client, device].includes('sequential'));
  const rows: Row[] = [];
  for (const cell of chosen) {
    progress(nameOf(cell));
    rows.push(row(await tryCell(cell, numbers, { foreign })));
  }
  const beside = foreign === 0 ? '' : `, beside ${foreign} flows a second of other hosts behind each sequential NAT`;
  return {
    bench: 'nat',
    about: `share of ${seeds} simulated connections that are direct within 15 s${beside}, and ms until then.`,
    rows,
    goals: chosen.flatMap((cell) => goalsOf(cell, foreign)),
  };
}

function row({ name, share, times }: CellResult): Row {
  return { case: name, unit: 'direct', better: 'higher', ours: { median: share, min: share, max: share }, peers: {}, times };
}

function goalsOf(cell: Cell, foreign: number): Goal[] {
  const { times = {}, ...share } = expected(cell, foreign);
  const name = nameOf(cell);
  const figures = Object.entries(times) as [NonNullable<Goal['time']>, number][];
  return [{ case: name, ...share }, ...figures.map(([time, atMost]) => ({ case: name, time, atMost }))];
}
