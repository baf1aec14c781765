/**
 * Keep-alive intervals: the application's preference, limited to what the path supports.
 *
 *   profile     most, ms   until a PING is repeated, ms   PINGs before the connection is considered lost
 *   live          10,000            1,000                   5     notices fast
 *   balanced      55,000            2,000                  15
 *   eco          114,000            2,000                  15
 *
 * 1. An explicit number overrides that of the profile. Without one, the interval learned for the NAT counts
 *    (`learner.ts`), and 25 s until one is known.
 * 2. A base station's numbers are an upper bound, and over a WebSocket so is the interval that its proxies allow
 *    (`idle-limit.ts`): 25 s, as many close connections that are silent for 60 s, or less where that was learned.
 * 3. All of it ends before the peer's idle timeout; otherwise the idle timeout would decide instead of the retries.
 */
import type { KeepAlive } from '../../bindings/options.ts';

/** The application's preference for keep-alive. `balanced` is the default. */
export type KeepAliveProfile = 'live' | 'balanced' | 'eco';

interface Profile extends KeepAlive {
  /** Used if the learned interval allows it. */
  readonly interval: number;
}

const PROFILES: Readonly<Record<KeepAliveProfile, Profile>> = {
  live: { interval: 10_000, retryInterval: 1_000, maxRetries: 5 },
  balanced: { interval: 55_000, retryInterval: 2_000, maxRetries: 15 },
  eco: { interval: 114_000, retryInterval: 2_000, maxRetries: 15 },
};

/** Ordered from most to least traffic. */
export const keepAliveProfiles = Object.keys(PROFILES) as readonly KeepAliveProfile[];
export const defaultProfile: KeepAliveProfile = 'balanced';

/** ms, until more is known of the NAT, and where nothing can be learned: hardly any NAT forgets a mapping sooner. */
export const UNLEARNED_INTERVAL = 25_000;
/** ms, over a WebSocket until less is learned: below the 60 s after which many proxies end one without traffic. */
export const WEBSOCKET_INTERVAL = 25_000;
/** Our constant, ms: allowance for the travel time of the last PING. */
const TRAVEL = 5_000;
/** Where retries take the whole idle timeout: the first PING leaves after this share of it. */
const MIN_SHARE = 1 / 3;

/** The facts that determine the keep-alive of one connection. */
export interface KeepAliveFacts {
  readonly profile: KeepAliveProfile;
  /** Numbers set explicitly for it. */
  readonly explicit?: Partial<KeepAlive> | undefined;
  /** Numbers of the base station. */
  readonly bound?: KeepAlive | undefined;
  /** The interval that the NAT was found to allow, ms; null while unknown. */
  readonly learned: number | null;
  /** ms without a packet after which the peer, or this end, forgets the connection; 0: never. */
  readonly idleTimeout: number;
  /** The longest interval that keeps the WebSocket open over which it runs, ms; absent over UDP. */
  readonly webSocketInterval?: number | undefined;
}

/** Returns the keep-alive numbers of a connection. */
export function keepAliveOf({ profile, explicit = {}, bound, learned, idleTimeout, webSocketInterval }: KeepAliveFacts): KeepAlive {
  const wanted = PROFILES[profile];
  const { retryInterval = wanted.retryInterval, maxRetries = wanted.maxRetries } = explicit;
  const fitting = Math.min(wanted.interval, webSocketInterval ?? learned ?? UNLEARNED_INTERVAL);
  const numbers = withinBound({ interval: explicit.interval ?? fitting, retryInterval, maxRetries }, bound);
  const most = webSocketInterval ?? Number.POSITIVE_INFINITY;
  return { ...numbers, interval: Math.min(numbers.interval, most, beforeIdle(numbers, idleTimeout)) };
}

/** Returns the longest interval that a profile would use, ms. */
export function longestOf(profile: KeepAliveProfile): number {
  return PROFILES[profile].interval;
}

export function isKeepAliveProfile(value: unknown): value is KeepAliveProfile {
  return keepAliveProfiles.includes(value as KeepAliveProfile);
}

function withinBound(numbers: KeepAlive, bound: KeepAlive | undefined): KeepAlive {
  if (bound === undefined) return numbers;
  return {
    interval: Math.min(numbers.interval, bound.interval),
    retryInterval: Math.min(numbers.retryInterval, bound.retryInterval),
    maxRetries: Math.min(numbers.maxRetries, bound.maxRetries),
  };
}

/** Returns the latest time for the first PING, so that the last one arrives in time. */
function beforeIdle({ retryInterval, maxRetries }: KeepAlive, idleTimeout: number): number {
  if (idleTimeout === 0) return Number.POSITIVE_INFINITY;
  return Math.max(idleTimeout - retryInterval * maxRetries - TRAVEL, Math.ceil(idleTimeout * MIN_SHARE));
}
