/**
 * Earlier proofs, in build/conformance/proofs.json: for each claim a digest of its proof's dependencies, which are the
 * claim itself, the source of its symbol, the file of its test and the prover. A change elsewhere may break a proof,
 * too, so each run proves a tenth of the unchanged claims.
 */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Claim } from './claims.ts';
import { placesOf } from './replacement.ts';

const FILE = 'build/conformance/proofs.json';
const PROVER = 'test/conformance/prove';
/** Parts of the prover that choose and count proofs, and do not affect them. */
const CLERKS = ['cache.ts', 'claims.ts', 'main.ts', 'selection.ts'];

/** Files that a proof depends on, relative to the root. */
export function filesOf(root: string, { row, file }: Claim): string[] {
  return [...new Set([...placesOf(root, row).map((place) => place.file), file])];
}

/** Files of the prover on which every proof depends. */
export function proverFiles(root: string): string[] {
  return readdirSync(join(root, PROVER))
    .filter((name) => !CLERKS.includes(name))
    .sort()
    .map((name) => `${PROVER}/${name}`);
}

export class ProofCache {
  readonly #root: string;
  readonly #prover: string;
  readonly #proofs: Record<string, string>;

  constructor(root: string) {
    this.#root = root;
    this.#prover = digest(root, proverFiles(root));
    const path = join(root, FILE);
    this.#proofs = existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : {};
  }

  /** Whether the claim was proved and nothing has changed since. */
  has(claim: Claim): boolean {
    return this.#proofs[claim.key] === this.#digestOf(claim);
  }

  /** Records whether the claim was proved. */
  note(claim: Claim, isProved: boolean): void {
    if (isProved) this.#proofs[claim.key] = this.#digestOf(claim);
    else delete this.#proofs[claim.key];
  }

  /** Writes the proofs of these claims and discards others. */
  save(claims: readonly Claim[]): void {
    const keys = new Set(claims.map(({ key }) => key));
    const proofs = Object.fromEntries(Object.entries(this.#proofs).filter(([key]) => keys.has(key)));
    const path = join(this.#root, FILE);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, `${JSON.stringify(proofs, null, 2)}\n`);
  }

  #digestOf(claim: Claim): string {
    return `${this.#prover} ${digest(this.#root, filesOf(this.#root, claim))}`;
  }
}

function digest(root: string, files: readonly string[]): string {
  const hash = createHash('sha256');
  for (const file of files) hash.update(`${file}\0`).update(readFileSync(join(root, file)));
  return hash.digest('hex').slice(0, 16);
}
