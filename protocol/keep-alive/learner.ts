/**
 * Learns how long this host's NAT keeps a mapping, and so how rare keep-alives may be. One per host: this is a property
 * of the network.
 *
 * Theory of operation. It is in one state of `NEXT`:
 *
 * - idle: nothing to learn. No station helps, no session wants long pauses, the search is over, or it is unfit.
 * - waiting: the next probe begins at a known time.
 * - probing: a probe is under way.
 *
 *   idle ──▶ waiting ──due──▶ probing ──verdict──▶ waiting ──▶ … ──▶ idle
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

type State = 'idle' | 'waiting' | 'probing';
type Input = 'use' | 'replace' | 'forget' | 'interrupt' | 'lost' | 'due' | 'verdict' | 'void';
/**
 * `probe`: the probe begins. `start`, `pause`, `growing pause`: a probe ends, and the next one begins after that delay.
 * `stay`: that time stays as it is. With nothing to learn, idle follows in place of waiting.
 */
type Next = 'probe' | 'start' | 'pause' | 'growing pause' | 'stay';

/** State → input → what follows. Any other input changes nothing. */
const NEXT: Readonly<Record<State, Readonly<Partial<Record<Input, Next>>>>> = {
  idle: { use: 'start', replace: 'start', forget: 'start', lost: 'pause' },
  waiting: { use: 'stay', replace: 'start', forget: 'start', lost: 'pause', due: 'probe' },
  probing: { replace: 'start', forget: 'start', lost: 'pause', interrupt: 'pause', verdict: 'pause', void: 'growing pause' },
};

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
    return { state: this.#reported, ...known };
  }

  /**
   * Sets the STUN port that supports RESPONSE-PORT, null for none.
   * @param longest ms between keep-alives that a session wants; 0: none needs to know
   */
  use(server: SocketAddress | null, longest: number, now: number): void {
    const isSame = server?.address === this.#server?.address && server?.port === this.#server?.port;
    this.#longest = longest;
    this.#server = server;
    this.#step(isSame ? 'use' : 'replace', now);
  }

  /** Call when this host is in another network. */
  forget(now: number): void {
    this.#search = new TimeoutSearch();
    this.#isUnfit = false;
    this.#losses = 0;
    this.#voidPause = VOID_PAUSE;
    this.#ceiling = Number.POSITIVE_INFINITY;
    this.#step('forget', now);
    this.#events.push({ kind: 'changed' });
  }

  /** Call when the host was suspended for a while: a probe in progress begins again. */
  interrupt(now: number): void {
    this.#step('interrupt', now);
  }

  /** Call when a mapping in use was gone. @param interval ms between the keep-alives that should have kept it */
  lost(interval: number, now: number): void {
    if (now - this.#lostAt > LOSS_MEMORY) this.#losses = 0;
    this.#lostAt = now;
    this.#losses++;
    this.#ceiling = Math.max(MIN_INTERVAL, Math.round(Math.min(interval, this.#ceiling) / 2));
    if (this.#losses < MAX_LOSSES) this.#search = new TimeoutSearch();
    this.#step('lost', now);
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
    if (this.#nextAt <= now) this.#step('due', now);
    this.#probe?.handleTimeout(now);
    this.#follow(now);
  }

  get #state(): State {
    if (this.#probe !== null) return 'probing';
    return this.#nextAt < Number.POSITIVE_INFINITY ? 'waiting' : 'idle';
  }

  get #reported(): MappingReport['state'] {
    if (this.#isUnfit) return 'unfit';
    if (this.#isDone) return this.#search.timeout === null ? 'off' : 'learned';
    return this.#server === null || this.#longest === 0 ? 'off' : 'learning';
  }

  get #isDone(): boolean {
    return this.#losses >= MAX_LOSSES || this.#search.next(this.#longest) === null;
  }

  /** Takes the step that `NEXT` lists for an input, after the findings of that input are noted. */
  #step(input: Input, now: number): void {
    const next = NEXT[this.#state][input];
    if (next === undefined) return;
    if (next === 'probe') this.#begin(now);
    else if (next === 'stay') this.#schedule(this.#nextAt);
    else {
      this.#stop();
      this.#schedule(now + this.#delay(next));
    }
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
    if (verdict === 'unfit') this.#isUnfit = true;
    else if (verdict === 'lived') this.#search.lived(this.#silence);
    else if (verdict === 'died') this.#search.died(this.#silence);
    if (verdict !== 'void') this.#voidPause = VOID_PAUSE;
    this.#step(verdict === 'void' ? 'void' : 'verdict', now);
    if (this.#isDone && this.#losses < MAX_LOSSES) this.#ceiling = Number.POSITIVE_INFINITY;
    if (this.interval !== before) this.#events.push({ kind: 'changed' });
  }

  #delay(kind: 'start' | 'pause' | 'growing pause'): number {
    if (kind === 'pause') return PAUSE;
    if (kind === 'growing pause') {
      const pause = this.#voidPause;
      this.#voidPause = Math.min(2 * pause, MAX_VOID_PAUSE);
      return pause;
    }
    const [high = 0, low = 0] = this.#crypto.randomBytes(2);
    return START + Math.round((START_SPREAD * (256 * high + low)) / 65_536);
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
}
