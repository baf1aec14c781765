/**
 * Detects, with regular samples of the network, that this host has changed its network or has slept. No IO: the owner
 * takes a sample each second (`look`), and reacts.
 *
 * 1. A look shows the source address of packets to each destination. Where the platform does not report this, the
 *    interfaces decide: those with a default route, or the others where none has one. Virtual ones, such as container
 *    bridges, count only where there is nothing else.
 * 2. A different address than at the last look is `changed`; a return to the previous one, before the owner has settled
 *    in the other network, is `reverted`. An additional address, such as a further temporary one of IPv6, is no change
 *    while packets leave from the same address.
 * 3. The lack of a route is not an event: there is nothing to do. When there is a route again, that is `back`.
 * 4. A wall clock that is ahead of the monotonic one since the last look, or a look that comes long after it was due,
 *    is `slept`. Setting the wall clock looks the same, and costs the owner one challenge per path.
 * 5. A datagram that the system could not send makes the next look due immediately. If that shows no change, it is
 *    `unreachable`.
 */
import { networkOf } from '../address.ts';

/** An interface of this host with its addresses. */
export interface HostInterface {
  readonly name: string;
  /** Each `address/bits`, neither loopback nor link-local. */
  readonly addresses: readonly string[];
  /** `default`: a default route leads over it; `other`; `virtual`: a container bridge or a VPN. */
  readonly kind: 'default' | 'other' | 'virtual';
}

/** The result of one look. */
export interface NetworkSnapshot {
  /**
   * By destination: the source address of packets, null where there is no route. Absent where the platform does not
   * report it.
   */
  readonly sources?: ReadonlyMap<string, string | null>;
  /** Those with a default route first. Used only without `sources`. */
  readonly interfaces?: readonly HostInterface[];
}

/** The time of a look. */
export interface LookTime {
  /** Monotonic ms. */
  readonly now: number;
  /** Unix ms. */
  readonly wallTime: number;
}

/**
 * `changed`: packets leave from a different address than before. `reverted`: they leave from the address before a
 * change in which the owner has not settled yet. `back`: there is a route again, the same as before. `slept`: this host
 * was suspended. `unreachable`: the system refuses to send, though there is a route.
 */
export type NetworkEvent = 'changed' | 'reverted' | 'back' | 'slept' | 'unreachable';

/** ms between two looks. */
export const LOOK_INTERVAL = 1_000;
/** A failed datagram causes no look earlier than this after the last one, ms. */
const MIN_INTERVAL = 100;
/** Difference of the clocks, or lateness of a look, above which this host has slept, ms. */
const SLEEP = 2_000;
/** ms in which failed datagrams are reported once. */
const UNREACHABLE_PAUSE = 5_000;

export class NetworkMonitor {
  /** Source by destination: in the network in which the owner is settled, and at the last look that showed one. */
  #settled = new Map<string, string>();
  #latest = new Map<string, string>();
  /** Destinations without a route at the last look. */
  #down: ReadonlySet<string> = new Set();
  #last: LookTime | null = null;
  #hasFailed = false;
  #unreachableAfter = Number.NEGATIVE_INFINITY;

  /** Returns when to look: immediately before the first look. */
  nextTimeout(): number {
    if (this.#last === null) return Number.NEGATIVE_INFINITY;
    return this.#last.now + (this.#hasFailed ? MIN_INTERVAL : LOOK_INTERVAL);
  }

  /** Call when a datagram to one of the destinations could not be sent. Call `nextTimeout` again. */
  sendFailed(): void {
    this.#hasFailed = true;
  }

  /** Call when the owner uses the current network: the previous one no longer matters. */
  settle(): void {
    this.#settled = new Map(this.#latest);
  }

  /** Call when nothing is open any longer: the next look starts over. */
  stop(): void {
    this.#last = null;
    this.#hasFailed = false;
    this.#down = new Set();
    this.#latest.clear();
    this.#settled.clear();
  }

  /** Processes a look. @returns its most important event, null for none. Call `nextTimeout` again afterwards */
  look(snapshot: NetworkSnapshot, time: LookTime): NetworkEvent | null {
    const hasSlept = this.#hasSlept(time);
    const hasFailed = this.#hasFailed;
    this.#last = time;
    this.#hasFailed = false;
    const { hasChanged, isBack } = this.#compare(snapshot.sources ?? sourcesOf(snapshot.interfaces ?? []));
    if (hasChanged) return this.#isSettled() ? 'reverted' : 'changed';
    if (hasSlept) return 'slept';
    if (isBack) return 'back';
    if (!hasFailed || this.#latest.size <= this.#down.size || time.now < this.#unreachableAfter) return null;
    this.#unreachableAfter = time.now + UNREACHABLE_PAUSE;
    return 'unreachable';
  }

  #hasSlept({ now, wallTime }: LookTime): boolean {
    if (this.#last === null) return false;
    const passed = now - this.#last.now;
    return wallTime - this.#last.wallTime - passed > SLEEP || passed > LOOK_INTERVAL + SLEEP;
  }

  #compare(sources: ReadonlyMap<string, string | null>): { hasChanged: boolean; isBack: boolean } {
    const down = new Set<string>();
    let [hasChanged, isBack] = [false, false];
    for (const [destination, source] of sources) {
      if (source === null || isLinkLocal(source)) {
        down.add(destination);
        continue;
      }
      const before = this.#latest.get(destination);
      if (before !== undefined && before !== source) hasChanged = true;
      if (this.#down.has(destination)) isBack = true;
      this.#latest.set(destination, source);
      if (!this.#settled.has(destination)) this.#settled.set(destination, source);
    }
    for (const map of [this.#latest, this.#settled]) for (const known of map.keys()) if (!sources.has(known)) map.delete(known);
    this.#down = down;
    return { hasChanged, isBack };
  }

  #isSettled(): boolean {
    for (const [destination, source] of this.#latest) if (this.#settled.get(destination) !== source) return false;
    return true;
  }
}

/** Returns whether it is the address of a host that waits for a real one: no destination is reachable from there. */
function isLinkLocal(source: string): boolean {
  return source.startsWith('169.254.') || /^fe[89ab]/i.test(source);
}

/**
 * Derives a substitute for each family: the first interface in use that has it, with its IPv4 addresses or its IPv6
 * networks, as temporary addresses rotate within one.
 */
function sourcesOf(interfaces: readonly HostInterface[]): Map<string, string | null> {
  const kinds = ['default', 'other', 'virtual'] as const;
  const used = kinds.map((kind) => interfaces.filter((each) => each.kind === kind)).find(({ length }) => length > 0) ?? [];
  return new Map([
    ['IPv4', sourceIn(used, (address) => !address.includes(':'))],
    ['IPv6', sourceIn(used, (address) => address.includes(':'))],
  ]);
}

function sourceIn(used: readonly HostInterface[], isOfFamily: (address: string) => boolean): string | null {
  for (const { name, addresses } of used) {
    const own = addresses.map((address) => address.split('/')[0]!).filter(isOfFamily);
    if (own.length > 0) return [name, ...new Set(own.map(networkOf))].join(' ');
  }
  return null;
}
