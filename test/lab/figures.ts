/**
 * Figures of the lab: each test records its own; `report.ts` prints them as one table at the end of a run.
 *
 * A missed goal fails its test, unless `SVC_LAB_FIGURES=0`: on a machine with other work figures mean little, and are
 * only printed then. A property that holds on every machine (every byte arrives, nothing is fragmented) is not a
 * figure.
 */
import { appendFileSync } from 'node:fs';
import { expect } from 'vitest';
import type { Absence, Figure, Goal } from './report.ts';

const HELD = process.env.SVC_LAB_FIGURES !== '0';

/** Records a figure, and checks it against the goal when there is one. @param row its name, with its unit */
export function record(row: string, contender: string, value: number, { atLeast, atMost }: Goal = {}): void {
  note({ row, contender, value, ...(atLeast === undefined ? {} : { atLeast }), ...(atMost === undefined ? {} : { atMost }) });
  if (!HELD) return;
  // Soft: the other figures of the test are wanted too.
  if (atLeast !== undefined) expect.soft(value, row).toBeGreaterThanOrEqual(atLeast);
  if (atMost !== undefined) expect.soft(value, row).toBeLessThanOrEqual(atMost);
}

/** Records why peers have no figures. */
export function recordAbsent(reasons: Readonly<Record<string, string>>): void {
  for (const [absent, reason] of Object.entries(reasons)) note({ absent, reason });
}

function note(what: Figure | Absence): void {
  const file = process.env.SVC_LAB_REPORT;
  if (file !== undefined) appendFileSync(file, `${JSON.stringify(what)}\n`);
}
