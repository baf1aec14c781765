/** Collects values round by round, by case and contender, and makes report rows from them. */
import { type Row, spread } from './report.ts';

const OURS = 'ours';

export class Figures {
  readonly #values = new Map<string, Map<string, number[]>>();

  /** @param contender 'ours' or a peer's name */
  add(name: string, contender: string, value: number): void {
    const contenders = this.#values.get(name) ?? new Map<string, number[]>();
    this.#values.set(name, contenders);
    contenders.set(contender, [...(contenders.get(contender) ?? []), value]);
  }

  /** Returns the row of a case. @throws Error if our own contender has no value */
  row(name: string, unit: string, better: Row['better']): Row {
    const contenders = [...(this.#values.get(name) ?? [])];
    const ours = contenders.find(([contender]) => contender === OURS)?.[1] ?? [];
    const peers = contenders.filter(([contender]) => contender !== OURS).map(([contender, values]) => [contender, spread(values)]);
    return { case: name, unit, better, ours: spread(ours), peers: Object.fromEntries(peers) };
  }
}
