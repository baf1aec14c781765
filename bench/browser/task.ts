/**
 * The task that the server gives a page, and its outcome. Both ends share these types; bytes travel as hexadecimal
 * text.
 */

/** Where a task runs. */
export type Place = 'page' | 'worker';

/** One exported function of one module, called with one argument. */
export interface Task {
  readonly place: Place;
  /** Name of an entry of the site. */
  readonly module: string;
  readonly call: string;
  readonly input?: unknown;
}

/** Outcome of a task. */
export type Outcome = { readonly value: unknown } | { readonly error: string };
