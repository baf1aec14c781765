/** Runs a `Learner` over its own sockets, which are open only while it probes. */

import type { BoundSocket, Cancel, Environment } from '../../platform/environment.ts';
import { isLoopback, parseAddress, type SocketAddress } from '../../protocol/address.ts';
import { Learner, type MappingReport } from '../../protocol/keep-alive/index.ts';
import type { Session } from '../session/index.ts';

const ANY_IPV4 = '0.0.0.0';
const ANY_IPV6 = '::';

export type LearnerEnvironment = Pick<Environment, 'clock' | 'crypto' | 'network' | 'log'>;

export class LearnerRunner {
  readonly #environment: LearnerEnvironment;
  readonly #learner: Learner;
  readonly #onChange: () => void;
  /** By number. */
  readonly #sockets = new Map<number, BoundSocket>();
  /** Replaced when sockets that are still being opened are no longer wanted. */
  #probe = {};
  #server: SocketAddress | null = null;
  #cancelTimer: Cancel = () => {};
  #isClosed = false;

  /** @param onChange called when the interval has changed */
  constructor(environment: LearnerEnvironment, onChange: () => void) {
    this.#environment = environment;
    this.#learner = new Learner(environment.crypto);
    this.#onChange = onChange;
  }

  /** ms between keep-alives that the NAT allows; null while unknown. */
  get interval(): number | null {
    return this.#learner.interval;
  }

  get report(): MappingReport {
    return this.#learner.report;
  }

  /** As `Learner.use`. */
  use(server: SocketAddress | null, longest: number): void {
    if (this.#isClosed) return;
    this.#server = server;
    this.#learner.use(server, longest, this.#now);
    this.#serve();
  }

  /** This host is in another network. */
  forget(): void {
    if (this.#isClosed) return;
    this.#learner.forget(this.#now);
    this.#serve();
  }

  /** The host was absent for a while. */
  interrupt(): void {
    if (this.#isClosed) return;
    this.#learner.interrupt(this.#now);
    this.#serve();
  }

  /** A mapping in use was lost. @param interval ms between the keep-alives that were to keep it */
  lost(interval: number): void {
    if (this.#isClosed) return;
    this.#learner.lost(interval, this.#now);
    this.#serve();
  }

  close(): void {
    this.#isClosed = true;
    this.#cancelTimer();
    this.#closeSockets();
  }

  get #now(): number {
    return this.#environment.clock.now();
  }

  readonly #serve = (): void => {
    if (this.#isClosed) return;
    this.#learner.handleTimeout(this.#now);
    for (let event = this.#learner.nextEvent(); event !== null; event = this.#learner.nextEvent()) {
      if (event.kind === 'open') void this.#open(event.socket);
      else if (event.kind === 'close') this.#closeSockets();
      else this.#onChange();
    }
    for (let packet = this.#learner.transmit(this.#now); packet !== null; packet = this.#learner.transmit(this.#now)) {
      const { socket: number, datagram, to } = packet;
      const socket = this.#sockets.get(number);
      socket?.send(datagram, 0, datagram.length, socket.path(to.address, to.port), () => {});
    }
    this.#cancelTimer();
    const at = this.#learner.nextTimeout();
    if (at < Number.POSITIVE_INFINITY) this.#cancelTimer = this.#environment.clock.schedule(Math.max(0, at - this.#now), this.#serve);
  };

  async #open(number: number): Promise<void> {
    const probe = this.#probe;
    const { clock, log, network } = this.#environment;
    const host = this.#server?.address.includes(':') === true ? ANY_IPV6 : ANY_IPV4;
    try {
      const socket = await network.bind({
        port: 0,
        host,
        receive: (datagram, from) => {
          if (probe !== this.#probe) return;
          this.#learner.receive(datagram, from, number, clock.now());
          clock.soon(this.#serve);
        },
      });
      if (probe === this.#probe) {
        this.#sockets.set(number, socket);
        this.#learner.opened(number, this.#now);
      } else socket.close();
    } catch (error) {
      log.debug('no socket to learn how long the NAT keeps a mapping', { error: String(error) });
      if (probe === this.#probe) this.#learner.failed(this.#now);
    }
    this.#serve();
  }

  #closeSockets(): void {
    this.#probe = {};
    for (const socket of this.#sockets.values()) socket.close();
    this.#sockets.clear();
  }
}

/** Returns where a mapping can be measured: at a station with only this host's own NAT in between. */
export function serverBehindNat(channels: Iterable<Session>, isNear: (address: string) => boolean): SocketAddress | null {
  for (const { paths, stunServers } of channels) {
    const { kind, address } = paths.validated;
    if (kind !== 'udp') continue;
    const bytes = parseAddress(address);
    if (bytes === null || isLoopback(bytes) || isNear(address)) continue;
    const stun = stunServers.find(({ address: other, responsePort }) => responsePort === true && other === undefined);
    if (stun !== undefined) return { address, port: stun.port };
  }
  return null;
}
