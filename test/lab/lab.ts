/** What the lab's tests share: the suite that is skipped where it cannot run, the contenders over a link, and the table of figures. */
import { describe } from 'vitest';
import { Contenders } from '../../bench/contenders.ts';
import { select } from '../../bench/peers.ts';
import { type Program, withChildren } from '../../bench/processes/parent.ts';
import { EmulatedLink } from './emulator.ts';
import { FAR_ADDRESS, type Link, type LinkCounters, type LinkOptions, over } from './link.ts';
import { NetemLink } from './netem.ts';

/** `SVC_LAB_PEERS`: as `--peers` of the benches. */
const PEERS = process.env.SVC_LAB_PEERS ?? 'tcp,udx';
/** ms for one measurement of a peer. */
const PATIENCE = 120_000;

// Without vitest's main process nobody wants the rest; vitest's own `process.exit` of a worker throws.
process.once('disconnect', () => process.kill(process.pid, 'SIGKILL'));

export const lab: typeof describe.skip = describe.skipIf(process.env.SVC_LAB_MISSING !== undefined);

/** Runs `work` over a link of the kind chosen for this run (`SVC_LAB_LINK`: `netem` or `emulator`). */
export async function overLink(options: LinkOptions, work: (link: Link) => Promise<void>): Promise<LinkCounters> {
  return over(process.env.SVC_LAB_LINK === 'netem' ? NetemLink.open(options) : await EmulatedLink.open(options), work);
}

/** Runs `work` with ours and the peers, who connect from the near end of the link to the far one. @returns peers that could not be measured */
export function withContenders(
  link: Link,
  ours: readonly Program[],
  work: (contenders: Contenders) => Promise<void>,
  names: string = PEERS,
): Promise<Readonly<Record<string, string>>> {
  const { peers, absent } = select(names);
  const places = {
    host: FAR_ADDRESS,
    near: link.near.inside.bind(link.near),
    far: link.far.inside.bind(link.far),
    patience: PATIENCE,
  };
  return withChildren(async (start) => {
    const contenders = await Contenders.start(start, places, ours, peers, absent);
    await work(contenders);
    return contenders.absent;
  });
}

/** Figures by column (a link) and contender, printed at the end of a suite. */
export class Table {
  readonly #title: string;
  readonly #columns = new Set<string>();
  readonly #rows = new Map<string, Map<string, string>>();

  constructor(title: string) {
    this.#title = title;
  }

  set(column: string, contender: string, value: string): void {
    this.#columns.add(column);
    this.#rows.set(contender, (this.#rows.get(contender) ?? new Map()).set(column, value));
  }

  print(): void {
    if (this.#rows.size === 0) return;
    const columns = [...this.#columns];
    const line = (name: string, cells: readonly string[]): string =>
      `  ${name.padEnd(18)}${cells.map((cell) => cell.padStart(19)).join('')}`;
    const rows = [...this.#rows].map(([name, cells]) =>
      line(
        name,
        columns.map((column) => cells.get(column) ?? '–'),
      ),
    );
    process.stdout.write(['', this.#title, line('', columns), ...rows, '', ''].join('\n'));
  }
}
