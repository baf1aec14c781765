/** For searches whose sessions have no keep-alive. */
import type { SearchKind } from '../../runtime/rendezvous/index.ts';

export const noKeepAlive: Pick<SearchKind, 'keepInterval' | 'keepAliveReport'> = {
  keepInterval: () => 25_000,
  keepAliveReport: () => ({ state: 'off', timeout: null, isAtLeast: false, losses: 0, interval: null }),
};
