/**
 * The relay of a base station: maps route ids to destinations (PROTOCOL.md §6, Routes).
 *
 * A route has two ends. Each end has its own id, valid only from the path of that end's channel. A packet that arrives
 * with it leaves on the other end's path, with the other end's id written over it in place. The station cannot read the
 * contents.
 *
 * An end has no path of its own: it uses the last validated path of its channel, and follows the channel. A Route
 * packet never causes migration, whatever its source and its id.
 *
 *   forward    id → end → path is the end's own → rate → ids swapped → path to send on
 *   reset      a Route packet whose id is unknown but once ours gets a Reset, smaller than the packet and rate-limited
 *   close      one route, or all of a channel: both ids die; the caller sends each remaining end its Reset
 *   release    an end returns a route that it no longer needs: the route ends when both have, or a moment later
 *   timeout    routes that are idle for long, or released by one end, end the same way, each with an event
 *
 * After `handleTimeout` and `release`: `nextEvent` until null; after that and `open`: `nextTimeout`. It does not send,
 * queue or keep time. It does not inspect the inner packet, except to drop a Route inside a Route.
 */
import type { CryptoProvider } from '../crypto-provider.ts';
import { Fifo } from '../fifo.ts';
import { encodeReset, PacketType, RESET_LENGTH, ROUTE_HEADER, u32 } from '../packet/index.ts';
import type { Path } from '../path.ts';
import { TokenBucket } from '../token-bucket.ts';
import { RouteIds } from './route-id.ts';

/**
 * A channel to the station, with the path on which its peer has proved to receive. The object is also its identity: two
 * connections of one peer may share a path.
 */
export interface RouteChannel {
  readonly paths: { readonly validated: Path };
}

/** Limits of routes. */
export interface RouteLimits {
  /** Most routes. */
  routes: number;
  /** Most routes of one channel. */
  routesPerChannel: number;
  /** For each direction of a route, per second; bursts of a tenth of a second are allowed. */
  bytesPerSecond: number;
  packetsPerSecond: number;
  /** Resets in answer to unknown ids, per second, in all. */
  resetsPerSecond: number;
  /**
   * Unknown ids checked, per second, in all: each costs a hash. More than resets, so that invented ids do not use up
   * the resets.
   */
  checksPerSecond: number;
  /** ms without a packet from either end after which a route ends; it may take half as long again. */
  idleTimeout: number;
}

/** Default limits of a base station. */
export const defaultRouteLimits: RouteLimits = {
  routes: 100_000,
  routesPerChannel: 1_000,
  bytesPerSecond: 250_000_000,
  packetsPerSecond: 200_000,
  resetsPerSecond: 1_000,
  checksPerSecond: 20_000,
  idleTimeout: 300_000,
};

/** One end of a route. The counters count what arrived from this end. */
export interface RouteEnd {
  /** 8 bytes: the id in the Route headers that this end sends and receives. */
  readonly id: Uint8Array;
  /**
   * Its `paths.validated` leads to this end: the id is valid only from there, and packets of the other end go there.
   */
  readonly channel: RouteChannel;
  /** Authenticates a Reset of the id to this end; 16 bytes. */
  readonly resetToken: Uint8Array;
  readonly other: RouteEnd;
  readonly bytes: number;
  readonly packets: number;
}

interface End extends RouteEnd {
  readonly check: number;
  readonly byteRate: TokenBucket;
  readonly packetRate: TokenBucket;
  other: End;
  bytes: number;
  packets: number;
  /** When the last packet arrived here, or the route was created. */
  usedAt: number;
  /** This end has released the route. */
  released: boolean;
}

/** A route that one end has released. */
interface Release {
  readonly end: End;
  readonly due: number;
}

/** ms for which a route continues after one end released it: the other end may still need to receive the close. */
export const RELEASE_DELAY = 3_000;

/**
 * A route has ended by itself; `end` is one of its ends. idle: no packet arrived within the idle timeout. released: an
 * end released it.
 */
export interface RouteEvent {
  readonly kind: 'idle' | 'released';
  readonly end: RouteEnd;
}

/** Counters of all routes since the table was created. */
export interface RouteCounters {
  forwarded: number;
  forwardedBytes: number;
  /** Dropped: the id belongs to another channel. */
  wrongPath: number;
  /** Dropped: over the route's rate. */
  overRate: number;
  /** Dropped: too short, a Route inside a Route. */
  malformed: number;
  /** Dropped: no such id. */
  unknown: number;
  resetsSent: number;
}

/** All routes of a base station. */
export class RouteTable {
  readonly counters: RouteCounters = {
    forwarded: 0,
    forwardedBytes: 0,
    wrongPath: 0,
    overRate: 0,
    malformed: 0,
    unknown: 0,
    resetsSent: 0,
  };
  readonly #ids: RouteIds;
  readonly #limits: RouteLimits;
  readonly #ends = new Map<number, End>();
  readonly #byChannel = new Map<RouteChannel, Set<End>>();
  readonly #resetRate: TokenBucket;
  readonly #checkRate: TokenBucket;
  readonly #events = new Fifo<RouteEvent>();
  /**
   * When to search for idle routes; Infinity while there are no routes. Use of a route does not change it: that happens
   * per packet.
   */
  #sweepAt = Number.POSITIVE_INFINITY;
  /** In the order in which they are due. */
  readonly #releases = new Fifo<Release>();
  /** The first of them, removed from the queue. */
  #nextRelease: Release | null = null;

  /** @param resetSecret 32 bytes kept over restarts; @param now ms, monotonic, as everywhere below */
  constructor(
    crypto: Pick<CryptoProvider, 'hmacSha256' | 'randomBytes'>,
    resetSecret: Uint8Array,
    limits: Partial<RouteLimits>,
    now: number,
  ) {
    this.#ids = new RouteIds(crypto, resetSecret);
    this.#limits = { ...defaultRouteLimits, ...limits };
    const { resetsPerSecond, checksPerSecond } = this.#limits;
    this.#resetRate = new TokenBucket(resetsPerSecond, resetsPerSecond, now);
    this.#checkRate = new TokenBucket(checksPerSecond, checksPerSecond, now);
  }

  /** Number of routes. */
  get size(): number {
    return this.#ends.size / 2;
  }

  /**
   * Creates a route between two channels.
   * @returns the end of `channel`, whose `other` is the second one; null when a limit is reached
   */
  open(channel: RouteChannel, otherChannel: RouteChannel, now: number): RouteEnd | null {
    if (this.size >= this.#limits.routes) return null;
    if ([channel, otherChannel].some((each) => (this.#byChannel.get(each)?.size ?? 0) >= this.#limits.routesPerChannel)) return null;
    const end = this.#end(channel, now);
    const other = this.#end(otherChannel, now);
    end.other = other;
    other.other = end;
    this.#sweepAt = Math.min(this.#sweepAt, now + this.#limits.idleTimeout);
    return end;
  }

  /** Ends a route. Does nothing when it has ended. */
  close(end: RouteEnd): void {
    for (const each of [end, end.other] as End[]) {
      this.#ends.delete(u32(each.id, 0));
      const ends = this.#byChannel.get(each.channel);
      ends?.delete(each);
      if (ends?.size === 0) this.#byChannel.delete(each.channel);
    }
  }

  /**
   * Releases a route that an end of `channel` no longer needs. The route ends now when the other end has released it
   * before, else in a moment.
   * @param id of that end, 8 bytes; one that is not of this channel changes nothing
   * @returns true when it has ended now, with an event
   */
  release(channel: RouteChannel, id: Uint8Array, now: number): boolean {
    const end = this.#ends.get(u32(id, 0));
    if (end === undefined || end.check !== u32(id, 4) || end.channel !== channel || end.released) return false;
    end.released = true;
    if (end.other.released) return this.#endRoute(end, 'released');
    const release = { end, due: now + RELEASE_DELAY };
    if (this.#nextRelease === null) this.#nextRelease = release;
    else this.#releases.push(release);
    return false;
  }

  /** Ends every route of a channel. @returns the ends that remain elsewhere: the caller sends each a Reset */
  closeChannel(channel: RouteChannel): RouteEnd[] {
    const ends = [...(this.#byChannel.get(channel) ?? [])];
    for (const end of ends) this.close(end);
    return ends.map((end) => end.other).filter((other) => other.channel !== channel);
  }

  /** Returns when to call `handleTimeout`, ms; Infinity for never. */
  nextTimeout(): number {
    return Math.min(this.#sweepAt, this.#nextRelease?.due ?? Number.POSITIVE_INFINITY);
  }

  /**
   * Ends the routes that are idle or released, with an event each. Their ends need no Reset: a later packet is
   * answered.
   */
  handleTimeout(now: number): void {
    for (let release = this.#nextRelease; release !== null && release.due <= now; release = this.#nextRelease) {
      if (this.#ends.get(u32(release.end.id, 0)) === release.end) this.#endRoute(release.end, 'released');
      this.#nextRelease = this.#releases.shift() ?? null;
    }
    if (now >= this.#sweepAt) this.#sweep(now);
  }

  #sweep(now: number): void {
    const { idleTimeout } = this.#limits;
    let nextIdle = Number.POSITIVE_INFINITY;
    for (const end of this.#ends.values()) {
      const idleAt = Math.max(end.usedAt, end.other.usedAt) + idleTimeout;
      if (idleAt > now) {
        nextIdle = Math.min(nextIdle, idleAt);
        continue;
      }
      this.#endRoute(end, 'idle');
    }
    // A sweep visits every route, so two per idle timeout are enough.
    this.#sweepAt = Math.max(nextIdle, now + idleTimeout / 2);
  }

  #endRoute(end: End, kind: RouteEvent['kind']): true {
    this.close(end);
    this.#events.push({ kind, end });
    return true;
  }

  /** Returns a route that has ended by itself, null when none has. */
  nextEvent(): RouteEvent | null {
    return this.#events.shift() ?? null;
  }

  /**
   * Processes a Route packet from `path`: writes the other end's id into `datagram` and returns the end to send it to,
   * or null: dropped and counted. After null, {@link answer} returns the Reset if one is due.
   */
  forward(datagram: Uint8Array, path: Path, now: number): RouteEnd | null {
    if (datagram.length <= ROUTE_HEADER || datagram[ROUTE_HEADER] === PacketType.ROUTE) return this.#drop('malformed');
    const end = this.#ends.get(u32(datagram, 1));
    if (end === undefined || end.check !== u32(datagram, 5)) return this.#drop('unknown');
    if (end.channel.paths.validated !== path) return this.#drop('wrongPath');
    if (!end.packetRate.take(1, now) || !end.byteRate.take(datagram.length, now)) return this.#drop('overRate');
    datagram.set(end.other.id, 1);
    end.usedAt = now;
    end.packets++;
    end.bytes += datagram.length;
    this.counters.forwarded++;
    this.counters.forwardedBytes += datagram.length;
    return end.other;
  }

  /**
   * Returns the Reset for a Route packet that was not forwarded, or null: the id is in use or never was ours, the
   * packet is too small, or the rate is exceeded.
   */
  answer(datagram: Uint8Array, now: number): Uint8Array | null {
    if (datagram.length <= RESET_LENGTH || datagram[0] !== PacketType.ROUTE) return null;
    const id = datagram.subarray(1, ROUTE_HEADER);
    if (this.#ends.get(u32(id, 0))?.check === u32(id, 4)) return null;
    if (!this.#checkRate.take(1, now) || !this.#ids.isOurs(id) || !this.#resetRate.take(1, now)) return null;
    this.counters.resetsSent++;
    return encodeReset({ id, token: this.#ids.resetToken(id) });
  }

  #drop(why: 'malformed' | 'unknown' | 'wrongPath' | 'overRate'): null {
    this.counters[why]++;
    return null;
  }

  #end(channel: RouteChannel, now: number): End {
    let id = this.#ids.next();
    while (this.#ends.has(u32(id, 0))) id = this.#ids.next();
    const { bytesPerSecond, packetsPerSecond } = this.#limits;
    const end: Omit<End, 'other'> & { other: End | null } = {
      id,
      channel,
      resetToken: this.#ids.resetToken(id),
      check: u32(id, 4),
      byteRate: new TokenBucket(bytesPerSecond, Math.max(bytesPerSecond / 10, 65_535), now),
      packetRate: new TokenBucket(packetsPerSecond, Math.max(packetsPerSecond / 10, 1), now),
      other: null,
      bytes: 0,
      packets: 0,
      usedAt: now,
      released: false,
    };
    this.#ends.set(u32(id, 0), end as End);
    const ends = this.#byChannel.get(channel) ?? new Set();
    this.#byChannel.set(channel, ends.add(end as End));
    return end as End;
  }
}
