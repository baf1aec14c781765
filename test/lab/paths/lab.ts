/** What the lab's tests of direct paths share. */
import { spawnSync } from 'node:child_process';
import { describe } from 'vitest';
import type { Program } from '../../../bench/processes/parent.ts';
import { fromRoot } from '../../../bench/root.ts';

const missing = process.env.SVC_LAB_MISSING ?? (spawnSync('nft', ['--version']).status === 0 ? undefined : 'nftables (nft)');

/** The suite, skipped where there are no NAT boxes; its name says why. */
export function labWithNat(name: string, work: () => void): void {
  describe.skipIf(missing !== undefined)(`${name}${missing === undefined ? '' : ` (skipped: needs ${missing})`}`, work);
}

/** A script of this folder, as a process that is called. @param name without extension */
export function script(name: string): Program {
  return { name, script: fromRoot(`test/lab/paths/${name}.mjs`) };
}
