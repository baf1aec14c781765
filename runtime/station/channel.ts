/**
 * A device's lasting channel to its base station. (The client's short-lived one is `StationConnector`.)
 *
 * 1. Dial the configured station (`dial.ts`) with its pin, or with the key that its document names (`proof.ts`). If
 *    another key answers, the document is fetched once more.
 * 2. Let the product attach on the fresh session; a redirect leads to 1 with the target's pin, at most MAX_REDIRECTS in
 *    a row.
 * 3. Attached: note the observed address and the STUN servers of the answer and wait for the session's end.
 * 4. Wait, and restart at 1 with the configured station: at once after a channel that held was closed or reset (the
 *    station restarted), else with the back-off. That stays short for a while: most stations that are away are back in
 *    seconds. After a refusal because of our identity the waits are long.
 */
import type { Router } from '../../protocol/coap/index.ts';
import { LONGEST_REST } from '../../protocol/connection/index.ts';
import type { SocketAddress, StunServer } from '../../protocol/control/index.ts';
import { asSvcError, LocalError, RemoteError, type SvcError } from '../../protocol/errors/index.ts';
import { BlockedNetworks } from '../../protocol/station-dial/index.ts';
import { Deferred } from '../deferred.ts';
import { Emitter } from '../emitter.ts';
import type { Host } from '../host/host.ts';
import type { Session } from '../session/session.ts';
import { Backoff, MAX_CERTIFICATE_DELAY, MAX_SLOW_DELAY, SlowBackoff } from './backoff.ts';
import type { StationUse } from './connector.ts';
import { dialStation, MAX_REDIRECTS } from './dial.ts';
import { StationProof } from './proof.ts';
import type { ConfiguredStation, StationAddress } from './station-address.ts';
import { WaysToStation } from './ways.ts';

/** The outcome of the product's attach. */
export type AttachVerdict =
  | { kind: 'attached'; observedAddress?: SocketAddress; stun?: readonly StunServer[] }
  | { kind: 'redirect'; station: StationAddress }
  /** A temporary failure: retried after the back-off, and not before `after` ms when the station said so. */
  | { kind: 'retry'; error: SvcError; after?: number }
  /**
   * Refused because of our identity (wrong ids, unknown fingerprint, replaced): retried after 10 s (REPLACED: 60 s), or
   * `after` ms, doubling up to 1 h.
   */
  | { kind: 'refused'; error: SvcError; after?: number };

type Attachment = Extract<AttachVerdict, { kind: 'attached' }>;

/** Which station, and how to attach there. */
export interface StationChannelConfig {
  host: Host;
  station: ConfiguredStation;
  /** Serves requests of the station on this channel. */
  router?: Router<Session>;
  /** Attaches on a fresh session. Errors in REFUSED count as 'refused', all others as 'retry'. */
  attach: (session: Session, context: StationUse) => Promise<AttachVerdict>;
}

/** Events of the channel, with their values. */
export interface StationChannelEvents {
  /** The product has attached on this session. */
  connected: Session;
  /** An attached channel ended; null when this end closed it. The next attempt follows unless `stop` was called. */
  disconnected: SvcError | null;
  /** An attempt failed; the next one follows in `delay` ms. */
  failed: { error: SvcError; delay: number; refused: boolean };
}

/**
 * ms for resolver and handshake: short, because a station that returns should not wait for a repeat that is seconds
 * away.
 */
const DIAL_TIMEOUT = 6_000;
/** ms for the product's attach. */
const ATTACH_TIMEOUT = 30_000;
/**
 * ms after which an attach has held: the back-off starts afresh, and the device reconnects at once after a restart of
 * the station.
 */
const HELD = 10_000;
/**
 * ms from the loss in which no wait exceeds SHORT_DELAY: including the rest of a dial, a station that was away for 10 s
 * is reached 5 s later.
 */
const SHORT_OUTAGE = 10_000 + DIAL_TIMEOUT;
const SHORT_DELAY = 2_000;
/** Most ms between attempts while connections over the lost channel may still rest. */
const REST_DELAY = 4_000;
/** ms that the loser of two devices with one identity waits first (PROTOCOL.md §7.10). */
const REPLACED_DELAY = 60_000;

/** From `start` to `stop`. */
interface Run {
  stopped: boolean;
  /** Ends the run's current wait. */
  interrupt: () => void;
}

/** A channel that reconnects by itself, from `start` to `stop`. */
export class StationChannel {
  readonly #config: StationChannelConfig;
  readonly #proof: StationProof;
  readonly #ways: WaysToStation;
  readonly #events: Emitter<StationChannelEvents>;
  readonly #backoff: Backoff;
  readonly #slow: SlowBackoff;
  /** When an attach that held was lost, or `start` was called. */
  #lostAt = 0;
  #session: Session | null = null;
  #run: Run | null = null;
  /** The current wait is our own back-off, not one that the station asked for. */
  #isBackingOff = false;
  #hurry: (() => void) | null = null;
  #ended: Promise<void> = Promise.resolve();

  constructor(config: StationChannelConfig) {
    const { crypto, log } = config.host.environment;
    this.#config = config;
    this.#proof = new StationProof(config.host.environment, config.station);
    this.#ways = new WaysToStation(config.station, config.host.environment, new BlockedNetworks());
    this.#events = new Emitter(log);
    this.#backoff = new Backoff(crypto);
    this.#slow = new SlowBackoff(crypto);
  }

  /** The attached session, null while there is none. */
  get session(): Session | null {
    return this.#session;
  }

  /** Starts, or starts again after `stop`; does nothing while it runs. */
  start(): void {
    if (this.#run !== null) return;
    const run: Run = { stopped: false, interrupt: () => {} };
    this.#run = run;
    this.#lostAt = this.#config.host.environment.clock.now();
    this.#backoff.reset();
    this.#slow.reset();
    this.#ended = this.#ended.then(() => this.#loop(run));
  }

  /** Detaches until `start`. Resolves when the session is closed and the run has ended. */
  async stop(): Promise<void> {
    const run = this.#run;
    if (run !== null) {
      this.#run = null;
      run.stopped = true;
      run.interrupt();
    }
    await this.#ended;
  }

  /** The network may have changed: a waiting attempt starts at once, unless it waits because the station said so. */
  hurry(): void {
    this.#hurry?.();
  }

  /** Adds a listener. @returns a function that stops listening */
  on<K extends keyof StationChannelEvents>(event: K, listener: (value: StationChannelEvents[K]) => void): () => void {
    return this.#events.on(event, listener);
  }

  async #loop(run: Run): Promise<void> {
    while (!run.stopped) {
      const delay = await this.#cycle(run);
      if (!run.stopped && delay > 0) await this.#sleep(run, delay);
    }
  }

  /**
   * Makes one attempt with its redirects and, if it attached, waits for the end of the channel.
   * @returns ms until the next one
   */
  async #cycle(run: Run): Promise<number> {
    let redirect: StationAddress | null = null;
    for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects++) {
      const verdict = await this.#attempt(run, redirect, redirects);
      if (run.stopped) return 0;
      if (typeof verdict === 'number') return verdict;
      if (verdict.kind !== 'redirect') return this.#failed(verdict.error, verdict.kind === 'refused', verdict.after);
      redirect = verdict.station;
    }
    return this.#failed(new RemoteError('BAD_RESPONSE', `more than ${MAX_REDIRECTS} redirects in a row`), false);
  }

  /** @param redirect the target; null: the configured station */
  async #attempt(
    run: Run,
    redirect: StationAddress | null,
    redirects: number,
  ): Promise<Exclude<AttachVerdict, { kind: 'attached' }> | number> {
    let dialled: { station: StationAddress; session: Session };
    try {
      dialled = redirect === null ? await this.#reach(run) : await this.#dial(run, redirect);
    } catch (error) {
      return troubleVerdict(asSvcError(error));
    }
    const { station, session } = dialled;
    run.interrupt = () => void session.close();
    if (run.stopped) run.interrupt();
    const verdict = await this.#attach(session, { station, redirects });
    if (verdict.kind === 'attached' && !run.stopped) return this.#hold(session, verdict);
    await session.close();
    return verdict.kind === 'attached' ? 0 : verdict;
  }

  /** Dials the configured station. If another key answers, its document is fetched once more. */
  async #reach(run: Run): Promise<{ station: StationAddress; session: Session }> {
    const stop = (): void => this.#proof.stop();
    run.interrupt = stop;
    const station = await this.#proof.current();
    try {
      return await this.#dial(run, station);
    } catch (error) {
      if (run.stopped || asSvcError(error).code !== 'FINGERPRINT_MISMATCH') throw error;
      run.interrupt = stop;
      const changed = await this.#proof.changed(station);
      if (changed === null) throw error;
      return this.#dial(run, changed);
    }
  }

  async #dial(run: Run, station: StationAddress): Promise<{ station: StationAddress; session: Session }> {
    const { host, router } = this.#config;
    const dial = dialStation(host, station, { timeout: DIAL_TIMEOUT, ways: this.#ways, ...(router && { router }) });
    run.interrupt = dial.cancel;
    if (run.stopped) dial.cancel();
    return { station, session: await dial.result };
  }

  /** Runs the product's attach, bounded in time and by the end of the session. */
  async #attach(session: Session, context: StationUse): Promise<AttachVerdict> {
    const late = new Deferred<AttachVerdict>();
    const timeout = new RemoteError('TIMEOUT', 'the base station did not answer the attach');
    const cancel = this.#config.host.environment.clock.schedule(ATTACH_TIMEOUT, () => late.resolve(troubleVerdict(timeout)));
    const ended = session.closed.then((error) => troubleVerdict(error ?? new LocalError('STOPPED', 'the channel was stopped')));
    try {
      return await Promise.race([this.#config.attach(session, context), late.promise, ended]);
    } catch (error) {
      return troubleVerdict(asSvcError(error));
    } finally {
      cancel();
    }
  }

  /** Waits for the end of an attached session. @returns ms until the next attempt */
  async #hold(session: Session, { observedAddress, stun = [] }: Attachment): Promise<number> {
    const { clock } = this.#config.host.environment;
    const since = clock.now();
    if (observedAddress !== undefined) session.noteObservedAddress(observedAddress);
    session.noteStun(stun);
    this.#session = session;
    this.#events.emit('connected', session);
    const error = await session.closed;
    this.#session = null;
    if (clock.now() - since >= HELD) this.#lostAt = clock.now();
    const delay = this.#delayAfter(error, clock.now() - since);
    this.#events.emit('disconnected', error);
    return delay;
  }

  #delayAfter(error: SvcError | null, held: number): number {
    this.#isBackingOff = error?.code !== 'REPLACED';
    if (held > this.#slow.current) this.#slow.reset();
    if (error?.code === 'REPLACED') return this.#slow.next(REPLACED_DELAY);
    if (held < HELD) return this.#next();
    this.#backoff.reset();
    return error?.code === 'CLOSED' ? 0 : this.#next();
  }

  #next(): number {
    const delay = this.#backoff.next();
    const outage = this.#config.host.environment.clock.now() - this.#lostAt;
    if (outage < SHORT_OUTAGE) return Math.min(delay, SHORT_DELAY);
    return outage < LONGEST_REST ? Math.min(delay, REST_DELAY) : delay;
  }

  #failed(error: SvcError, refused: boolean, after = error.code === 'REPLACED' ? REPLACED_DELAY : undefined): number {
    this.#isBackingOff = !refused && after === undefined;
    const wait = after === undefined ? 0 : Math.min(Math.max(0, after), MAX_SLOW_DELAY);
    const most = error.code === 'CERTIFICATE_VALIDATION_FAILED' ? MAX_CERTIFICATE_DELAY : MAX_SLOW_DELAY;
    const delay = refused ? this.#slow.next(after === undefined ? undefined : wait, most) : wait + this.#next();
    this.#events.emit('failed', { error, delay, refused });
    return delay;
  }

  #sleep(run: Run, delay: number): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        this.#hurry = null;
        cancel();
        resolve();
      };
      const cancel = this.#config.host.environment.clock.schedule(delay, end);
      run.interrupt = end;
      if (!this.#isBackingOff) return;
      this.#hurry = () => {
        this.#backoff.reset();
        end();
      };
    });
  }
}

/** Codes that do not resolve themselves with time. */
const REFUSED: readonly string[] = ['REPLACED', 'FINGERPRINT_MISMATCH', 'CERTIFICATE_VALIDATION_FAILED'];

/** Returns what a failed proof, dial or attach means for the next attempt. */
function troubleVerdict(error: SvcError): Exclude<AttachVerdict, { kind: 'attached' | 'redirect' }> {
  return { kind: REFUSED.includes(error.code) ? 'refused' : 'retry', error };
}
