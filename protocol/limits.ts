/**
 * A limit on what another party can use up. Each folder that has such limits exports them from its `limits.ts`, in the
 * groups of docs/limits.md: `both` (base station and device), `station`, `device`, `client`. `npm run limits` collects
 * them into that document. No other file of the product imports them, so no bundle contains these texts.
 */
export interface Limit {
  /** The constants of the code, in the order in which the texts below mention them. */
  readonly value?: number | readonly number[];
  /**
   * What the numbers count, by default `#`. Here and in the texts below `#` stands for the next value, `#B` and `#s`
   * for bytes and ms in convenient units.
   */
  readonly unit?: string;
  /** The settings, options or calls that change it; none: it is fixed. */
  readonly setting?: string;
  /** Rows of PROTOCOL.md §9 whose numbers this one mentions. */
  readonly protocol?: string | readonly string[];
  /** Constants of core-as whose numbers are among the values. */
  readonly core?: readonly string[];
  readonly filledBy: string;
  /** What the next honest user gets. */
  readonly next: string;
  readonly freedWhen: string;
  /** Files that test it full. */
  readonly test: string | readonly string[];
}

/** Limits by what they limit. */
export type Limits = Readonly<Record<string, Limit>>;
