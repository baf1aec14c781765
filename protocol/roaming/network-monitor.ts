/**
 * Notices that this host has changed its network or has slept, from what is looked at each second. No IO: who owns it looks, and reacts.
 *
 * 1. A look says from which address packets to each destination leave now. A host that does not tell this is judged by its interfaces: those with a default
 *    route, or the others where none has one. Virtual ones, such as container bridges, count only where there is nothing else.
 * 2. Another address than at the last look is `changed`, and back to the one before, as long as the owner has not settled in the other network, `reverted`.
 *    An address that is merely there, such as a further temporary one of IPv6, is no change while packets leave from the same as before.
 * 3. No way out is no event: there is nothing to be done. A way out that is there again is `back`.
 * 4. A wall clock that is ahead of the monotonic one since the last look, or a look that comes long after it was due, is `slept`. A wall clock that was set
 *    looks the same, and costs its owner one question to each path.
 * 5. A datagram that the system could not send has the next look taken at once. Where that shows no change it is `unreachable`.
 */
import { networkOf } from '../address.ts';

/** What of an interface counts. */
export interface InterfaceView {
  readonly name: string;
  /** `address/bits` each. */
  readonly addresses: readonly string[];
  readonly kind: 'default' | 'other' | 'virtual';
}

/** What one look shows. */
export interface NetworkSnapshot {
  /** By destination: the address that packets leave from, null for no way there. Absent where the host does not tell. */
  readonly sources?: ReadonlyMap<string, string | null>;
  /** Those with a default route first. Looked at only without `sources`. */
  readonly interfaces?: readonly InterfaceView[];
}

/** When a look is taken. */
export interface LookTime {
  /** Monotonic ms. */
  readonly now: number;
  /** Unix ms. */
  readonly wallTime: number;
}

/**
 * `changed`: packets leave from another address than before. `reverted`: they leave from where they left before a change in which the owner has not settled
 * yet. `back`: there is a way out again, the same as before. `slept`: time has passed that this host did not live through. `unreachable`: the system refuses
 * to send, though there is a way.
 */
export type NetworkEvent = 'changed' | 'reverted' | 'back' | 'slept' | 'unreachable';

/** ms between two looks. */
export const LOOK_INTERVAL = 1_000;
/** ms after the last look before which no datagram that failed causes another one. */
const LEAST_INTERVAL = 100;
/** ms by which clocks may disagree, or a look be late, before this host has slept. */
const SLEEP = 2_000;
/** ms in which datagrams that fail are told once. */
const UNREACHABLE_PAUSE = 5_000;

export class NetworkMonitor {
  /** Source by destination: in the network in which the owner is settled, and at the last look that showed one. */
  #settled = new Map<string, string>();
  #latest = new Map<string, string>();
  /** Destinations without a way at the last look. */
  #down: ReadonlySet<string> = new Set();
  #last: LookTime | null = null;
  #hasFailed = false;
  #unreachableAfter = Number.NEGATIVE_INFINITY;

  /** When to look: at once before the first look. */
  nextTimeout(): number {
    if (this.#last === null) return Number.NEGATIVE_INFINITY;
    return this.#last.now + (this.#hasFailed ? LEAST_INTERVAL : LOOK_INTERVAL);
  }

  /** A datagram to one of the destinations could not be sent. Ask `nextTimeout` again. */
  sendFailed(): void {
    this.#hasFailed = true;
  }

  /** The owner uses the present network: the one before is no longer of interest. */
  settle(): void {
    this.#settled = new Map(this.#latest);
  }

  /** Nothing is open any more: the next look begins afresh. */
  stop(): void {
    this.#last = null;
    this.#hasFailed = false;
    this.#down = new Set();
    this.#latest.clear();
    this.#settled.clear();
  }

  /** Takes a look. @returns what of it is the most; null for nothing. Afterwards ask `nextTimeout` again */
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

/** What a host has while it waits for an address: nobody is reached from there. */
function isLinkLocal(source: string): boolean {
  return source.startsWith('169.254.') || /^fe[89ab]/i.test(source);
}

/** A stand-in for each family: the first interface in use that has it, by its IPv4 addresses, or its IPv6 networks, as temporary addresses rotate in one. */
function sourcesOf(interfaces: readonly InterfaceView[]): Map<string, string | null> {
  const kinds = ['default', 'other', 'virtual'] as const;
  const used = kinds.map((kind) => interfaces.filter((each) => each.kind === kind)).find(({ length }) => length > 0) ?? [];
  return new Map([
    ['IPv4', sourceIn(used, (address) => !address.includes(':'))],
    ['IPv6', sourceIn(used, (address) => address.includes(':'))],
  ]);
}

function sourceIn(used: readonly InterfaceView[], isOfFamily: (address: string) => boolean): string | null {
  for (const { name, addresses } of used) {
    const own = addresses.map((address) => address.split('/')[0]!).filter(isOfFamily);
    if (own.length > 0) return [name, ...new Set(own.map(networkOf))].join(' ');
  }
  return null;
}
