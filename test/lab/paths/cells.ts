/** The expected results of the matrix of NAT kinds, and its table. */
import { NAT_KINDS, type NatKind } from './nat-boxes.ts';

/**
 * - `relay`: no direct path can be found: UDP is blocked, or neither end's port can be guessed.
 * - `guess`: 256 sockets of one end against 1,024 ports of the other: 98 of 100 times.
 * - `predict`: sequential ports are predicted.
 * - `at once`: openers and checks are enough.
 */
export type Expectation = 'relay' | 'guess' | 'predict' | 'at once';

/** They admit only packets from an address and port to which one was sent before. */
const STRICT: readonly NatKind[] = ['port', 'claiming', 'double', 'v6-firewall', 'sequential', 'random'];

export function expectationOf(client: NatKind, device: NatKind): Expectation {
  const kinds = [client, device];
  if (kinds.includes('blocked')) return 'relay';
  if (kinds.includes('random')) {
    if (kinds.every((kind) => kind === 'random' || kind === 'sequential')) return 'relay';
    return kinds.every((kind) => STRICT.includes(kind)) ? 'guess' : 'at once';
  }
  return kinds.includes('sequential') && kinds.every((kind) => STRICT.includes(kind)) ? 'predict' : 'at once';
}

/** Cells of the matrix, as `client device`. */
export class Cells<Cell> {
  readonly #cells = new Map<string, Cell>();

  set(client: NatKind, device: NatKind, cell: Cell): void {
    this.#cells.set(`${client} ${device}`, cell);
  }

  at(client: NatKind, device: NatKind): Cell | undefined {
    return this.#cells.get(`${client} ${device}`);
  }

  /** Clients in rows, devices in columns, in Markdown. */
  table(show: (cell: Cell | undefined) => string): string {
    const rows = NAT_KINDS.map((client) => [`**${client}**`, ...NAT_KINDS.map((device) => show(this.at(client, device)))]);
    const all = [['client ↓ device →', ...NAT_KINDS], ...rows];
    const widths = all[0]!.map((_, column) => Math.max(...all.map((row) => row[column]!.length)));
    const [head, ...body] = all.map((row) => `| ${row.map((cell, column) => cell.padEnd(widths[column]!)).join(' | ')} |`);
    return [head, `|${widths.map((width) => '-'.repeat(width + 2)).join('|')}|`, ...body].join('\n');
  }
}
