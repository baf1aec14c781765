/**
 * Loads the exchange when a password is first used: the curve's library takes some 8 MB, which an idle device or a
 * client without passwords does not need. Import this file, `kdf.ts` and `messages.ts` instead of the index to avoid
 * loading it.
 */
import type * as Exchange from './exchange.ts';

/** Process-wide, as a module is; kept as a promise so that later calls do not go through the module loader again. */
let loaded: Promise<typeof Exchange> | null = null;

/** Loads `exchange.ts`. Concurrent calls share one load; after a failure the next call tries again. */
export function loadExchange(): Promise<typeof Exchange> {
  loaded ??= import('./exchange.ts').catch((error: unknown) => {
    loaded = null;
    throw error;
  });
  return loaded;
}
