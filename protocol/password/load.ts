/**
 * The exchange, loaded when a password is first proved: the curve's library takes some 8 MB, which an idle device or a client without passwords
 * has no use for. Whoever imports this, `kdf.ts` and `messages.ts` instead of the index does not load it.
 */
import type * as Exchange from './exchange.ts';

/** As a module keeps it: the same for all in the process, and kept by promise so that later ones do not go through the host's loader again. */
let loaded: Promise<typeof Exchange> | null = null;

/** `exchange.ts`. Many at once share one load; one that failed is tried again by the next. */
export function loadExchange(): Promise<typeof Exchange> {
  loaded ??= import('./exchange.ts').catch((error: unknown) => {
    loaded = null;
    throw error;
  });
  return loaded;
}
