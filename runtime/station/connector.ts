/**
 * A client's channels to base stations: opened when needed, kept for further connects and while relayed sessions run
 * over them, closed when idle. Each need is one attempt without back-off: the caller gets the error.
 *
 * Channels are kept per station, since redirects lead different devices to different stations. If a kept channel turns
 * out to be gone (the station restarted), a fresh one replaces it, once, without an error for the caller.
 */

import type { Cancel } from '../../platform/environment.ts';
import type { PrivateKey } from '../../protocol/crypto-provider.ts';
import { asSvcError, LocalError, RemoteError } from '../../protocol/errors/index.ts';
import { BlockedNetworks } from '../../protocol/station-dial/index.ts';
import type { Host } from '../host/host.ts';
import type { Session } from '../session/session.ts';
import { unlessAborted } from '../unless-aborted.ts';
import { dialStation, MAX_REDIRECTS } from './dial.ts';
import { StationProof } from './proof.ts';
import type { ConfiguredStation, StationAddress } from './station-address.ts';
import { WaysToStation } from './ways.ts';

/** Which station, and how long its channels stay. */
export interface StationConnectorConfig {
  host: Host;
  /**
   * Without a pin its document is fetched when a channel is needed, and again when another key answers (`proof.ts`).
   */
  station: ConfiguredStation;
  /** Networks that block UDP, when other connectors use them as well. */
  blocked?: BlockedNetworks;
  /**
   * Key towards the station; default: a fresh one for each channel, so that the station cannot recognize a client
   * (PROTOCOL.md §1).
   */
  identity?: PrivateKey;
  /** ms without use and without relayed sessions until a channel is closed, default 30,000. */
  idleTimeout?: number;
}

/** The station on which `run` runs, or an attach. */
export interface StationUse {
  readonly station: StationAddress;
  /** Number of redirects that led here. */
  readonly redirects: number;
}

/** Returned by `run` instead of a result: run again at that station. */
export class Redirect {
  readonly station: StationAddress;

  constructor(station: StationAddress) {
    this.station = station;
  }
}

/** ms for resolver and handshake when `use` names none. */
const DIAL_TIMEOUT = 10_000;
const IDLE_TIMEOUT = 30_000;

interface Channel {
  readonly session: Session;
  users: number;
  cancelIdle: Cancel;
}

/** Channels to base stations, shared by the callers that need one. */
export class StationConnector {
  readonly #config: StationConnectorConfig;
  readonly #proof: StationProof;
  readonly #ways: WaysToStation;
  readonly #channels = new Map<string, Promise<Channel>>();
  #isClosed = false;

  constructor(config: StationConnectorConfig) {
    this.#config = config;
    this.#proof = new StationProof(config.host.environment, config.station);
    this.#ways = new WaysToStation(config.station, config.host.environment, config.blocked ?? new BlockedNetworks());
  }

  /**
   * Runs `run` on a session with the base station, connecting first when there is none, and again at the target of a
   * returned Redirect. `run` may be called a second time when a kept channel ended under it.
   * @param options `timeout`: ms for each dial, default 10,000; `signal` stops waiting (`run` handles it itself)
   * @throws DNS, CONNECTION_REFUSED, FINGERPRINT_MISMATCH, STOPPED; BAD_RESPONSE for more than 5 redirects; the errors
   *   of the proof by TLS (`proof.ts`); the errors of `run`
   */
  async use<T>(
    run: (session: Session, use: StationUse) => Promise<T | Redirect>,
    options: { signal?: AbortSignal; timeout?: number } = {},
  ): Promise<T> {
    let station = await unlessAborted(this.#proof.current(), options.signal);
    for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects++) {
      const result = await this.#runAt(station, (session) => run(session, { station: { ...station }, redirects }), options);
      if (!(result instanceof Redirect)) return result;
      station = result.station;
    }
    throw new RemoteError('BAD_RESPONSE', `more than ${MAX_REDIRECTS} redirects in a row`);
  }

  /** Closes all channels; later use fails with STOPPED. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#proof.stop();
    const channels = await Promise.allSettled(this.#channels.values());
    await Promise.all(channels.map((channel) => (channel.status === 'fulfilled' ? channel.value.session.close() : undefined)));
  }

  async #runAt<T>(
    station: StationAddress,
    run: (session: Session) => Promise<T>,
    options: { signal?: AbortSignal; timeout?: number },
  ): Promise<T> {
    const { channel, kept } = await this.#reach(station, options);
    channel.users++;
    channel.cancelIdle();
    try {
      return await run(channel.session);
    } catch (error) {
      if (!kept || channel.session.isOpen || this.#isClosed || asSvcError(error).code === 'STOPPED') throw error;
    } finally {
      channel.users--;
      this.#closeWhenIdle(channel);
    }
    return this.#runAt(station, run, options);
  }

  /** Returns the channel to a station, or to the one that its document now names. `kept`: it existed before. */
  async #reach(station: StationAddress, options: { signal?: AbortSignal; timeout?: number }): Promise<{ channel: Channel; kept: boolean }> {
    const kept = this.#channels.has(keyOf(station));
    try {
      return { channel: await this.#channel(station, options), kept };
    } catch (error) {
      if (asSvcError(error).code !== 'FINGERPRINT_MISMATCH') throw error;
      const changed = await unlessAborted(this.#proof.changed(station), options.signal);
      if (changed === null) throw error;
      const isThere = this.#channels.has(keyOf(changed));
      return { channel: await this.#channel(changed, options), kept: isThere };
    }
  }

  async #channel(station: StationAddress, options: { signal?: AbortSignal; timeout?: number }): Promise<Channel> {
    if (this.#isClosed || options.signal?.aborted === true) throw new LocalError('STOPPED', 'the connect was stopped');
    const key = keyOf(station);
    let channel = this.#channels.get(key);
    if (channel === undefined) {
      channel = this.#dial(station, options.timeout ?? DIAL_TIMEOUT);
      this.#channels.set(key, channel);
      const forget = (): void => {
        if (this.#channels.get(key) === channel) this.#channels.delete(key);
      };
      channel.then(({ session }) => session.on('closed', forget), forget);
    }
    return unlessAborted(channel, options.signal);
  }

  /** All callers that wait for it share the dial, so no signal ends it. */
  async #dial(station: StationAddress, timeout: number): Promise<Channel> {
    const { host, identity } = this.#config;
    const dial = dialStation(host, station, { timeout, identity: identity ?? host.environment.crypto.generateKey(), ways: this.#ways });
    const channel: Channel = { session: await dial.result, users: 0, cancelIdle: () => {} };
    this.#closeWhenIdle(channel);
    return channel;
  }

  #closeWhenIdle(channel: Channel): void {
    const { host, idleTimeout = IDLE_TIMEOUT } = this.#config;
    if (channel.users > 0 || !channel.session.isOpen) return;
    channel.cancelIdle = host.environment.clock.schedule(idleTimeout, () => {
      if (!channel.session.isOpen) return;
      if (host.relayedOver(channel.session) > 0) this.#closeWhenIdle(channel);
      else void channel.session.close();
    });
  }
}

function keyOf({ host, port, fingerprint }: StationAddress): string {
  return `${host} ${port} ${fingerprint}`;
}
