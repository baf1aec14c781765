/** Shared by the lab's tests of direct paths. */
import { spawnSync } from 'node:child_process';
import { describe } from 'vitest';
import type { Program } from '../../../bench/processes/parent.ts';
import { fromRoot } from '../../../bench/root.ts';
import { Namespace } from '../namespaces.ts';
import { NAT_KINDS, rulesOf } from './nat-boxes.ts';

const missing = process.env.SVC_LAB_MISSING ?? missingForNat();

/** The suite, skipped where there are no NAT boxes; its name says why. */
export function labWithNat(name: string, work: () => void): void {
  describe.skipIf(missing !== undefined)(`${name}${missing === undefined ? '' : ` (skipped: needs ${missing})`}`, work);
}

/** A script of this folder as a process with callable functions. @param name without extension */
export function script(name: string): Program {
  return { name, script: fromRoot(`test/lab/paths/${name}.mjs`) };
}

function missingForNat(): string | undefined {
  if (spawnSync('nft', ['--version']).status !== 0) return 'nftables (nft)';
  const namespace = new Namespace();
  try {
    const addresses = { outside: '198.51.100.2', inside: '192.168.1.10', station: ['192.0.2.1'] };
    for (const kind of NAT_KINDS) namespace.nft(`flush ruleset\n${rulesOf(kind, addresses)}`);
    return undefined;
  } catch {
    return 'a kernel with NAT by nftables';
  } finally {
    namespace.remove();
  }
}
