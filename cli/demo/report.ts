/**
 * The demo's output: one line per step with its time and figure, a closing table, and with `--json` one JSON line at
 * the end.
 */

/** One finished step. `figure` is the result for a person, e.g. "92 MB/s"; `values` the same for a program. */
export interface Step {
  readonly name: string;
  readonly ok: boolean;
  readonly ms: number;
  readonly figure: string;
  readonly values: Readonly<Record<string, number | string | boolean>>;
}

export class Report {
  readonly steps: Step[] = [];
  readonly #json: boolean;
  readonly #started = performance.now();

  constructor(json: boolean) {
    this.#json = json;
  }

  get ok(): boolean {
    return this.steps.length > 0 && this.steps.every((step) => step.ok);
  }

  /** Runs and times one step. An error that it throws is recorded as its failure and thrown again. */
  async step<T extends { figure: string; values?: Step['values'] }>(name: string, run: () => Promise<T>): Promise<T> {
    const start = performance.now();
    try {
      const result = await run();
      this.#add({ name, ok: true, ms: performance.now() - start, figure: result.figure, values: result.values ?? {} });
      return result;
    } catch (error) {
      this.#add({ name, ok: false, ms: performance.now() - start, figure: (error as Error).message, values: {} });
      throw error;
    }
  }

  /** Prints the closing table, or the JSON line. */
  close(): void {
    const ms = Math.round(performance.now() - this.#started);
    if (this.#json) {
      process.stdout.write(`${JSON.stringify({ event: 'demo', ok: this.ok, ms, steps: this.steps })}\n`);
      return;
    }
    const width = Math.max(...this.steps.map((step) => step.name.length));
    const rows = this.steps.map(
      (step) => `  ${step.ok ? 'ok  ' : 'FAIL'}  ${step.name.padEnd(width)}  ${seconds(step.ms)}  ${step.figure.split('\n')[0] ?? ''}`,
    );
    process.stdout.write(`\n${rows.join('\n')}\n\n${this.ok ? 'Every check held' : 'A check failed'} after ${(ms / 1000).toFixed(1)} s.\n`);
  }

  #add(step: Step): void {
    this.steps.push(step);
    if (!this.#json) process.stdout.write(`${step.ok ? '✓' : '✗'} ${step.name}: ${step.figure} (${seconds(step.ms).trim()})\n`);
  }
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(2)} s`.padStart(9);
}
