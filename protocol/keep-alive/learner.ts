/**
 * Learns how long this host's NAT keeps a mapping, and so how rare keep-alives may be. One per host: this is a property
 * of the network.
 *
 *   off ──RESPONSE-PORT supported, and long pauses wanted──▶ waiting ──▶ probing ──▶ … ──▶ learned | unfit
 *
 * 1. It begins 15 to 30 s after a station is available, so that hosts do not all probe at once when a station returns,
 *    and a short command sends no probe.
 * 2. Probes follow one another (mapping-probe.ts) as the bisection says (timeout-search.ts), with pauses where the
 *    network does not answer.
 * 3. `lost`: a mapping in use was gone. The interval is immediately set to half of the one in use. After the first loss
 *    the search begins again, since the NAT may have restarted; after a second within an hour its result is no longer
 *    trusted.
 * 4. `forget`: another network. Nothing is known.
 *
 * Cost: at most 5 silences, each tried at most twice, with at most 15 requests of 20 or 28 bytes per try; then none.
 * Methods: receive, transmit, nextTimeout, handleTimeout, nextEvent; poll the results again after each call.
 */
import type { SocketAddress } from '../address.ts';
import type { CryptoProvider } from '../crypto-provider.ts';
import { MappingProbe, type ProbePacket, type ProbeVerdict } from './mapping-probe.ts';
import { UNLEARNED_INTERVAL } from './profile.ts';
import { MIN_INTERVAL, TimeoutSearch } from './timeout-search.ts';

/**
 * `open`: open a socket of that number, then call `opened`. `close`: close all sockets. `changed`: the interval has
 * changed.
 */
export type LearnerEvent = { readonly kind: 'open'; readonly socket: number } | { readonly kind: 'close' } | { readonly kind: 'changed' };

/** Findings about this host's NAT. */
export interface MappingReport {
  /**
   * `off`: no session needs to know, or no station helps; `learning`; `learned`; `unfit`: this network does not allow
   * it, for example where a NAT has several external addresses.
   */
  readonly state: 'off' | 'learning' | 'learned' | 'unfit';
  /** Approximate lifetime of a mapping, ms; null while unknown. */
  readonly timeout: number | null;
  /** The lifetime is at least this: no longer silence was tried. */
  readonly isAtLeast: boolean;
  /** Mappings in use that were lost on this network, each within an hour of the previous one. */
  readonly losses: number;
}

/** Our constants, ms: from a station to the first probe, and the maximum random addition; between two probes. */
const START = 15_000;
const START_SPREAD = 15_000;
const PAUSE = 1_000;
/** Pause after a probe that the network did not answer, doubling. */
const VOID_PAUSE = 30_000;
const MAX_VOID_PAUSE = 600_000;
/**
 * Losses after which the search is no longer trusted, and ms after which a loss no longer counts: a router may restart
 * now and then.
 */
const MAX_LOSSES = 2;
const LOSS_MEMORY = 3_600_000;

export class Learner {
  readonly #crypto: Pick<CryptoProvider, 'randomBytes'>;
  readonly #events: LearnerEvent[] = [];
  #search = new TimeoutSearch();
  #probe: MappingProbe | null = null;
  /** Silence of the probe, ms. */
  #silence = 0;
  #server: SocketAddress | null = null;
  /** The longest interval that a session wants, ms. */
  #longest = 0;
  /** When the next probe begins. */
  #nextAt = Number.POSITIVE_INFINITY;
  #voidPause = VOID_PAUSE;
  #isUnfit = false;
  #losses = 0;
  #lostAt = Number.NEGATIVE_INFINITY;
  /** Half of the interval in use at the last loss. */
  #ceiling = Number.POSITIVE_INFINITY;

  constructor(crypto: Pick<CryptoProvider, 'randomBytes'>) {
    this.#crypto = crypto;
  }

  /** ms between keep-alives that the NAT allows; null while unknown. */
  get interval(): number | null {
    const found = this.#search.interval;
    const learned = found ?? (this.#ceiling < Number.POSITIVE_INFINITY ? UNLEARNED_INTERVAL : null);
    return learned === null ? null : Math.min(learned, this.#ceiling);
  }

  get report(): MappingReport {
    const { timeout } = this.#search;
    const known = { timeout: timeout?.about ?? null, isAtLeast: timeout?.isAtLeast ?? false, losses: this.#losses };
    return { state: this.#state, ...known };
  }

  /**
   * Sets the STUN port that supports RESPONSE-PORT, null for none.
   * @param longest ms between keep-alives that a session wants; 0: none needs to know
   */
  use(server: SocketAddress | null, longest: number, now: number): void {
    const isSame = server?.address === this.#server?.address && server?.port === this.#server?.port;
    this.#longest = longest;
    if (!isSame) {
      this.#server = server;
      this.#stop();
    }
    if (this.#probe === null) this.#schedule(this.#nextAt < Number.POSITIVE_INFINITY ? this.#nextAt : now + this.#startDelay());
  }

  /** Call when this host is in another network. */
  forget(now: number): void {
    this.#search = new TimeoutSearch();
    this.#isUnfit = false;
    this.#losses = 0;
    this.#voidPause = VOID_PAUSE;
    this.#ceiling = Number.POSITIVE_INFINITY;
    this.#stop();
    this.#schedule(now + this.#startDelay());
    this.#events.push({ kind: 'changed' });
  }

  /** Call when the host was suspended for a while: a probe in progress begins again. */
  interrupt(now: number): void {
    if (this.#probe === null) return;
    this.#stop();
    this.#schedule(now + PAUSE);
  }

  /** Call when a mapping in use was gone. @param interval ms between the keep-alives that should have kept it */
  lost(interval: number, now: number): void {
    if (now - this.#lostAt > LOSS_MEMORY) this.#losses = 0;
    this.#lostAt = now;
    this.#losses++;
    this.#ceiling = Math.max(MIN_INTERVAL, Math.round(Math.min(interval, this.#ceiling) / 2));
    this.#stop();
    if (this.#losses < MAX_LOSSES) {
      this.#search = new TimeoutSearch();
      this.#schedule(now + PAUSE);
    }
    this.#events.push({ kind: 'changed' });
  }

  /** Call when the socket of that number is open. */
  opened(socket: number, now: number): void {
    this.#probe?.opened(socket, now);
    this.#follow(now);
  }

  /** Call when a socket could not be opened. */
  failed(now: number): void {
    this.#probe?.failed();
    this.#follow(now);
  }

  receive(datagram: Uint8Array, from: SocketAddress, socket: number, now: number): void {
    this.#probe?.receive(datagram, from, socket, now);
    this.#follow(now);
  }

  transmit(now: number): ProbePacket | null {
    return this.#probe?.transmit(now) ?? null;
  }

  nextEvent(): LearnerEvent | null {
    return this.#events.shift() ?? null;
  }

  nextTimeout(): number {
    return this.#probe?.nextTimeout() ?? this.#nextAt;
  }

  handleTimeout(now: number): void {
    if (this.#probe === null && this.#nextAt <= now) this.#begin(now);
    this.#probe?.handleTimeout(now);
    this.#follow(now);
  }

  get #state(): MappingReport['state'] {
    if (this.#isUnfit) return 'unfit';
    if (this.#isDone) return this.#search.timeout === null ? 'off' : 'learned';
    return this.#server === null || this.#longest === 0 ? 'off' : 'learning';
  }

  get #isDone(): boolean {
    return this.#losses >= MAX_LOSSES || this.#search.next(this.#longest) === null;
  }

  #begin(now: number): void {
    this.#nextAt = Number.POSITIVE_INFINITY;
    const silence = this.#search.next(this.#longest);
    if (silence === null || this.#server === null) return;
    this.#silence = silence;
    this.#probe = new MappingProbe({ crypto: this.#crypto, server: this.#server, silence });
    this.#follow(now);
  }

  /** Handles the events of the probe. */
  #follow(now: number): void {
    for (let event = this.#probe?.nextEvent() ?? null; event !== null; event = this.#probe?.nextEvent() ?? null) {
      if (event.kind === 'open') this.#events.push(event);
      else this.#over(event.verdict, now);
    }
  }

  #over(verdict: ProbeVerdict, now: number): void {
    const before = this.interval;
    this.#stop();
    if (verdict === 'unfit') this.#isUnfit = true;
    else if (verdict === 'lived') this.#search.lived(this.#silence);
    else if (verdict === 'died') this.#search.died(this.#silence);
    this.#schedule(now + (verdict === 'void' ? this.#nextVoidPause() : PAUSE));
    if (verdict !== 'void') this.#voidPause = VOID_PAUSE;
    if (this.#isDone && this.#losses < MAX_LOSSES) this.#ceiling = Number.POSITIVE_INFINITY;
    if (this.interval !== before) this.#events.push({ kind: 'changed' });
  }

  #nextVoidPause(): number {
    const pause = this.#voidPause;
    this.#voidPause = Math.min(2 * pause, MAX_VOID_PAUSE);
    return pause;
  }

  /** Sets the time of the next probe, if one is needed. */
  #schedule(at: number): void {
    const isWanted = this.#server !== null && this.#longest > 0 && !this.#isUnfit && !this.#isDone;
    this.#nextAt = isWanted ? at : Number.POSITIVE_INFINITY;
  }

  #stop(): void {
    this.#nextAt = Number.POSITIVE_INFINITY;
    if (this.#probe === null) return;
    this.#probe = null;
    this.#events.push({ kind: 'close' });
  }

  #startDelay(): number {
    const [high = 0, low = 0] = this.#crypto.randomBytes(2);
    return START + Math.round((START_SPREAD * (256 * high + low)) / 65_536);
  }
}
