/**
 * Contenders (ours and the peers) as pairs of processes: one listens, one connects. They are measured in turn. A peer
 * that fails is excluded, with its reason; if ours fails, the bench fails.
 */
import type { Child, Program, Start } from './processes/parent.ts';

const PATIENCE = 30_000;

export interface Pair {
  readonly name: string;
  /** Connects, and measures. */
  readonly near: Child;
  /** Listens. */
  readonly far: Child;
  /** Address at which `far` listens, in its transport's form. */
  readonly address: unknown;
}

export interface Places {
  /** Numeric address of the listening processes: one for all, or a function of the contender's name. */
  readonly host: string | ((name: string) => string);
  /** Adapts the programs of either end, to run them elsewhere. */
  readonly near?: (program: Program) => Program;
  readonly far?: (program: Program) => Program;
  /** Limit for one step of a peer, ms; a slower peer is excluded. Default 30 s. */
  readonly patience?: number;
}

export class Contenders {
  readonly absent: Record<string, string>;
  #pairs: readonly Pair[] = [];
  readonly #ours: ReadonlySet<string>;
  readonly #patience: number;

  private constructor(ours: readonly Program[], absent: Readonly<Record<string, string>>, patience: number) {
    this.#patience = patience;
    this.#ours = new Set(ours.map(({ name }) => name));
    this.absent = { ...absent };
  }

  /** Starts and connects all contenders. */
  static async start(
    start: Start,
    { host, near = same, far = same, patience = PATIENCE }: Places,
    ours: readonly Program[],
    peers: readonly Program[],
    absent: Readonly<Record<string, string>>,
  ): Promise<Contenders> {
    const contenders = new Contenders(ours, absent, patience);
    for (const program of [...ours, ...peers]) {
      const pair = await contenders.#attempt(program.name, async () => {
        const [listening, connecting] = [start(far(program)), start(near(program))];
        const address = await listening.call<unknown>('listen', { host: typeof host === 'string' ? host : host(program.name) });
        await connecting.call('connect', { address });
        return { name: program.name, near: connecting, far: listening, address };
      });
      if (pair !== null) contenders.#pairs = [...contenders.#pairs, pair];
    }
    return contenders;
  }

  /** Pairs that have not failed so far. */
  get pairs(): readonly Pair[] {
    return this.#pairs;
  }

  /** Runs `work` on each pair in turn. */
  async each(work: (pair: Pair) => Promise<void>): Promise<void> {
    for (const pair of this.#pairs) {
      const done = await this.#attempt(pair.name, async () => {
        await work(pair);
        return pair;
      });
      if (done === null) this.#pairs = this.#pairs.filter((other) => other !== pair);
    }
  }

  /** Runs `work` on all pairs at once, for work that does not compete for the processor or the line. */
  async together(work: (pair: Pair) => Promise<void>): Promise<void> {
    const done = await Promise.all(this.#pairs.map((pair) => this.#attempt(pair.name, () => work(pair).then(() => pair))));
    this.#pairs = this.#pairs.filter((pair) => done.includes(pair));
  }

  async #attempt<Result>(name: string, work: () => Promise<Result>): Promise<Result | null> {
    try {
      return await inTime(work(), this.#patience);
    } catch (error) {
      if (this.#ours.has(name)) throw error;
      this.absent[name] = error instanceof Error ? error.message : String(error);
      return null;
    }
  }
}

function same(program: Program): Program {
  return program;
}

async function inTime<Result>(work: Promise<Result>, patience: number): Promise<Result> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${patience / 1000} s`)), patience);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
