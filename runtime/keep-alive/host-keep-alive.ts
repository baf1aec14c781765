/**
 * Keep-alive of all sessions that a host opened: it combines what each connection wants with what is known of the
 * host's NAT. One for each host.
 *
 * 1. `follow` a connection to a device, and with it the channel behind its route, or a channel alone: its numbers are
 *    set, and set again when the knowledge of the NAT or its path changes.
 * 2. A channel whose station answers to RESPONSE-PORT starts the learner, unless the station is on this host or in its
 *    network, without a NAT in between. A channel without its own profile takes the strictest of the connections.
 * 3. A challenge on a channel's path means that the station may see this host at another address: the host asks.
 *    Another port: the NAT has lost the mapping that the keep-alive was to keep, unless this host turns out to have
 *    slept or changed its network. Another address: another network.
 *
 * 4. The learner learns how long a NAT keeps a lasting flow; it may forget a single exchange sooner. So after the first
 *    packets of a channel, on a new path, and after anything that may have cost the mapping, another packet follows 3 s
 *    later, and such a pair every 5 min: a restarted router may give out the same port, and then no end notices.
 *
 * 5. A channel that ends because its WebSocket was cut after a silence shows what proxies allow
 *    (`protocol/keep-alive/idle-limit.ts`). It holds for all WebSockets of the host until the network changes, and is
 *    not saved, like learned intervals.
 *
 * The learned interval applies to channels and relayed connections, whose packets pass only this NAT. A direct
 * connection also passes the other end's NAT, which is unknown: 25 s at most.
 */
import type { KeepAlive } from '../../bindings/index.ts';
import type { Cancel } from '../../platform/environment.ts';
import type { SocketAddress } from '../../protocol/address.ts';
import {
  defaultProfile,
  IdleLimit,
  type KeepAliveProfile,
  keepAliveOf,
  keepAliveProfiles,
  longestOf,
  type MappingReport,
  UNLEARNED_INTERVAL,
} from '../../protocol/keep-alive/index.ts';
import type { Session } from '../session/index.ts';
import { WebSocketCut } from '../websocket/index.ts';
import { type LearnerEnvironment, LearnerRunner, serverBehindNat } from './learner-runner.ts';

/** What a session needs. */
export interface KeepAliveWish {
  readonly profile: KeepAliveProfile;
  /** Numbers that the application has set. */
  readonly explicit?: Partial<KeepAlive>;
}

/** What a channel to a station needs. */
export interface ChannelWish {
  /** Absent: the connections decide. */
  readonly profile?: KeepAliveProfile;
  /** Numbers of the station. */
  readonly bound?: KeepAlive;
}

export interface HostKeepAliveOptions {
  readonly environment: LearnerEnvironment;
  /** Returns whether an address is in a network of this host. */
  readonly isNear: (address: string) => boolean;
  /** Calls back when this host is in another network. @returns a function that stops it */
  readonly onChange: (callback: () => void) => Cancel;
  /** Returns the current channel behind a route. */
  readonly channelOf: (session: Session) => Session | null;
  /** Asks a station where it sees this host; null where it does not say. */
  readonly ask: (channel: Session) => Promise<SocketAddress | null>;
}

/** What keep-alive does, for a person to read. */
export interface KeepAliveReport extends MappingReport {
  /**
   * ms between the keep-alives of the channel to the station, or of the connection without one; null where there is no
   * keep-alive.
   */
  readonly interval: number | null;
}

/** ms between challenges on a warm path: below half of the 90 s after which the other end forgets it. */
const MAX_WARM = 40_000;

/** ms after which this host knows whether it has slept or changed its network. */
const SETTLE = 2_500;

/** ms after which a packet makes a flow a lasting one: more than the 2 s of Linux. And ms between two such packets. */
const STREAM = 3_000;
const STREAM_CHECK = 300_000;

interface Entry<W> {
  wish: W;
  /** Numbers in use; null before they were set. */
  numbers: KeepAlive | null;
}

interface ChannelEntry extends Entry<ChannelWish> {
  /**
   * Where the station last saw this host: undefined before it said so, null where that is out of date, as after this
   * host changed its network.
   */
  seen: SocketAddress | null | undefined;
  isAsking: boolean;
  cancelSteady: Cancel;
}

export class HostKeepAlive {
  readonly #options: HostKeepAliveOptions;
  readonly #runner: LearnerRunner;
  readonly #channels = new Map<Session, ChannelEntry>();
  readonly #sessions = new Map<Session, Entry<KeepAliveWish>>();
  /** Connections of each profile. */
  readonly #counts: Record<KeepAliveProfile, number> = { live: 0, balanced: 0, eco: 0 };
  #idleLimit = new IdleLimit();
  #stopWatching: Cancel | null = null;
  #isClosed = false;

  constructor(options: HostKeepAliveOptions) {
    this.#options = options;
    this.#runner = new LearnerRunner(options.environment, () => this.#applyAll());
  }

  /** Follows a connection to a device that this host opened. Call once for each. */
  follow(session: Session, wish: KeepAliveWish): void {
    if (this.#isClosed || !session.isOpen) return;
    const followed: Entry<KeepAliveWish> = { wish, numbers: null };
    this.#sessions.set(session, followed);
    this.#counts[wish.profile]++;
    session.on('path', () => this.#migrated(session, followed));
    session.on('closed', () => {
      this.#sessions.delete(session);
      this.#counts[wish.profile]--;
      this.#update();
    });
    this.#migrated(session, followed);
  }

  /**
   * Follows a channel to a station that this host opened. May be called again, for example when the station has
   * reported its STUN ports.
   */
  followChannel(channel: Session, wish: ChannelWish = {}): void {
    if (this.#isClosed || !channel.isOpen) return;
    const known = this.#channels.get(channel);
    if (known === undefined) this.#addChannel(channel, wish);
    else if (known.seen === undefined) known.seen = channel.observedAddress ?? undefined;
    this.#update();
  }

  /**
   * Something other than the NAT's timeout, such as sleep, may have cost the mappings in use: earlier reports of
   * stations no longer count.
   */
  interrupted(): void {
    for (const [channel, followed] of this.#channels) {
      followed.seen = null;
      this.#steady(channel, followed);
    }
    this.#runner.interrupt();
  }

  /** This host is in another network: forgets what was learned. */
  networkChanged(): void {
    for (const followed of this.#channels.values()) followed.seen = null;
    this.#forget();
  }

  /** ms between challenges that keep a route warm behind a direct path. */
  get warmInterval(): number {
    return Math.min(MAX_WARM, this.#runner.interval ?? UNLEARNED_INTERVAL);
  }

  /** Returns the ms between keep-alives of a followed connection. */
  intervalOf(session: Session): number {
    return this.#sessions.get(session)?.numbers?.interval ?? UNLEARNED_INTERVAL;
  }

  /** Reports what is known of the NAT, and the keep-alive interval of a channel, or of the one behind a connection. */
  report(session: Session | null): KeepAliveReport {
    const channel = session === null || this.#channels.has(session) ? session : this.#options.channelOf(session);
    const followed = (channel && this.#channels.get(channel)) ?? (session && this.#sessions.get(session));
    return { ...this.#runner.report, interval: followed?.numbers?.interval ?? null };
  }

  close(): void {
    this.#isClosed = true;
    for (const { cancelSteady } of this.#channels.values()) cancelSteady();
    this.#stopWatching?.();
    this.#runner.close();
  }

  /** Passes the channels' needs to the learner, and the connections' needs to the channels. */
  #update(): void {
    if (this.#isClosed) return;
    const longest = Math.max(0, ...[...this.#channels.values()].map(({ wish }) => longestOf(this.#profileOf(wish))));
    const server = serverBehindNat(this.#channels.keys(), this.#options.isNear);
    this.#runner.use(server, longest > UNLEARNED_INTERVAL ? longest : 0);
    if (server !== null) this.#watch();
    for (const [channel, followed] of this.#channels) this.#applyTo(channel, followed);
  }

  #watch(): void {
    this.#stopWatching ??= this.#options.onChange(() => this.networkChanged());
  }

  #applyAll(): void {
    for (const [channel, followed] of this.#channels) this.#applyTo(channel, followed);
    for (const [session, followed] of this.#sessions) this.#apply(session, followed);
  }

  #addChannel(channel: Session, wish: ChannelWish): void {
    const followed: ChannelEntry = {
      wish,
      numbers: null,
      seen: channel.observedAddress ?? undefined,
      isAsking: false,
      cancelSteady: () => {},
    };
    this.#channels.set(channel, followed);
    channel.on('challenged', () => void this.#challenged(channel, followed));
    // This host chose another path itself, so the station sees another address.
    channel.on('path', () => {
      followed.seen = null;
      this.#update();
      this.#steady(channel, followed);
    });
    channel.on('closed', (error) => {
      followed.cancelSteady();
      this.#channels.delete(channel);
      if (error instanceof WebSocketCut) this.#cut(error);
      this.#update();
    });
  }

  /** A connection has another path, and perhaps another channel behind it. */
  #migrated(session: Session, followed: Entry<KeepAliveWish>): void {
    const channel = this.#options.channelOf(session);
    if (channel === null) this.#update();
    else this.followChannel(channel);
    this.#apply(session, followed);
  }

  #applyTo(channel: Session, followed: ChannelEntry): void {
    const { bound } = followed.wish;
    const { idleTimeout } = channel.connection.peer;
    const profile = this.#profileOf(followed.wish);
    const facts = { profile, bound, learned: this.#runner.interval, idleTimeout, webSocketInterval: this.#webSocketInterval(channel) };
    const isOther = set(channel, followed, keepAliveOf(facts));
    if (isOther) this.#steady(channel, followed);
  }

  #cut({ silence }: WebSocketCut): void {
    if (this.#isClosed) return;
    this.#watch();
    const { interval: before } = this.#idleLimit;
    this.#idleLimit.cut(silence);
    const { interval } = this.#idleLimit;
    if (interval === before) return;
    this.#options.environment.log.debug('something on the way cuts silent WebSockets', { silence, interval });
    this.#applyAll();
  }

  /** The flow of a channel may have just begun: a second packet makes it a lasting one. */
  #steady(channel: Session, followed: ChannelEntry): void {
    const { clock } = this.#options.environment;
    followed.cancelSteady();
    if (this.#isClosed || (followed.numbers?.interval ?? 0) <= UNLEARNED_INTERVAL) return;
    followed.cancelSteady = clock.schedule(STREAM, () => {
      channel.ping();
      followed.cancelSteady = clock.schedule(STREAM_CHECK, () => {
        channel.ping();
        this.#steady(channel, followed);
      });
    });
  }

  #apply(session: Session, followed: Entry<KeepAliveWish>): void {
    const { profile, explicit } = followed.wish;
    const { interval } = this.#runner;
    const isRelayed = session.paths.type === 'RELAY';
    const learned = isRelayed ? interval : Math.min(UNLEARNED_INTERVAL, interval ?? UNLEARNED_INTERVAL);
    const webSocketInterval = this.#webSocketInterval(isRelayed ? this.#options.channelOf(session) : null);
    set(
      session,
      followed,
      keepAliveOf({ profile, explicit, learned, idleTimeout: session.connection.peer.idleTimeout, webSocketInterval }),
    );
  }

  /** Returns the longest interval over the WebSocket of a channel, ms; undefined where there is none. */
  #webSocketInterval(channel: Session | null): number | undefined {
    return channel?.paths.active.kind === 'websocket' ? this.#idleLimit.interval : undefined;
  }

  #profileOf({ profile }: ChannelWish): KeepAliveProfile {
    return profile ?? keepAliveProfiles.find((each) => this.#counts[each] > 0) ?? defaultProfile;
  }

  async #challenged(channel: Session, followed: ChannelEntry): Promise<void> {
    this.#steady(channel, followed);
    if (followed.isAsking) return;
    followed.isAsking = true;
    const interval = followed.numbers?.interval ?? UNLEARNED_INTERVAL;
    const seen = await this.#options.ask(channel);
    followed.isAsking = false;
    if (seen === null || this.#isClosed || !channel.isOpen) return;
    const before = followed.seen;
    followed.seen = seen;
    if (before === null || before === undefined || (before.address === seen.address && before.port === seen.port)) return;
    const { clock, log } = this.#options.environment;
    if (before.address === seen.address) {
      clock.schedule(SETTLE, () => {
        // A change of network or a sleep would have set it to null.
        if (followed.seen !== seen || !channel.isOpen) return;
        log.debug('the NAT has lost the mapping of the channel', { interval });
        this.#runner.lost(interval);
      });
    } else {
      log.debug('this host has another address outside', { before: before.address, now: seen.address });
      this.#forget();
    }
  }

  #forget(): void {
    this.#idleLimit = new IdleLimit();
    // Sets the numbers of all again.
    this.#runner.forget();
  }
}

/**
 * Sets numbers unless they are in use: setting them again would restart their pause. A PING starts the pause of new
 * ones, as the last packet may be long ago.
 * @returns whether they were set
 */
function set(session: Session, followed: Entry<unknown>, numbers: KeepAlive): boolean {
  const { numbers: before } = followed;
  if (!session.isOpen || (before !== null && isSame(before, numbers))) return false;
  followed.numbers = numbers;
  session.setKeepAlive(numbers);
  if (before !== null) session.ping();
  return true;
}

function isSame(a: KeepAlive, b: KeepAlive): boolean {
  return a.interval === b.interval && a.retryInterval === b.retryInterval && a.maxRetries === b.maxRetries;
}
