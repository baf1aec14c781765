/**
 * STUN beside the base station: plain Binding (RFC 8489) on its own ports. Devices and clients learn how their NAT
 * maps, and with RESPONSE-PORT (RFC 5780 §7.5) how long it keeps a mapping.
 *
 * Their channel is the first sample: it ends at the main port, which answers no STUN. Another port shows a mapping that
 * depends on the port, another address one that depends on the address.
 *
 * 1. A datagram that is not a plain request gets no answer.
 * 2. Nor does one above the total rate, or above that of its address. Only answered requests count against the total
 *    rate, so that one address cannot use it up; forged sources can, for as long as they come.
 * 3. The answer holds the address from which the request came, and goes there: 32 bytes for 20, 44 for IPv6. With
 *    RESPONSE-PORT, which costs 8 bytes more, it goes to that port, from 1,024 on, of the same address only: with a
 *    forged source an attacker reaches no more than without RESPONSE-PORT.
 *
 * A socket that cannot be bound is logged once. Nothing else of the base station depends on it.
 */

import type { BoundSocket, Environment } from '../../platform/environment.ts';
import { canonicalAddress } from '../../protocol/address.ts';
import type { StunServer } from '../../protocol/control/index.ts';
import { asSvcError, LocalError } from '../../protocol/errors/index.ts';
import type { Path } from '../../protocol/path.ts';
import { Rates } from '../../protocol/rates.ts';
import { answerPort, encodeBindingAnswer } from '../../protocol/stun/index.ts';
import { TokenBucket } from '../../protocol/token-bucket.ts';
import { addressKey } from './rates.ts';
import type { StationSettings } from './settings.ts';

export interface StunOptions extends Pick<StationSettings, 'stunPort' | 'stunAddress'> {
  readonly environment: Pick<Environment, 'clock' | 'network' | 'log'>;
  /** UDP port of the base station. */
  readonly mainPort: number;
  /** Numeric address of the base station; default all. */
  readonly host?: string;
}

/**
 * Requests a second of one address (IPv4) or /64 (IPv6), and burst: a host sends a few when its network changes.
 */
export const PER_ADDRESS = 10;
export const PER_ADDRESS_BURST = 30;
/** Requests a second in total: after a restart all attached devices send one within a minute. */
export const TOTAL = 2_000;
/** Answers that may wait to leave one socket. */
export const MAX_WAITING = 256;
const MAX_PORT = 0xffff;

/** Addresses that mean all of a host. */
const ALL: readonly string[] = ['0.0.0.0', '::'];

/**
 * Checks the settings before anything is opened.
 * @param station where the base station will be: its UDP port, 0 for any; its numeric address, all when left out
 * @throws LocalError INVALID_ARGUMENT with one line that says what to do
 */
export function checkStun(
  { stunPort, stunAddress }: Pick<StationSettings, 'stunPort' | 'stunAddress'>,
  { port, host }: { readonly port: number; readonly host?: string },
): void {
  const wrong = (problem: string): never => {
    throw new LocalError('INVALID_ARGUMENT', problem);
  };
  if (stunPort !== null && !(Number.isInteger(stunPort) && stunPort >= 0 && stunPort <= MAX_PORT))
    wrong(`${stunPort} is not a valid port for STUN: choose one from 1 to ${MAX_PORT}, or 0 to do without`);
  if (stunPort !== 0 && stunPort === port)
    wrong(`${stunPort} is the UDP port of the base station: choose another one for STUN, or 0 to do without`);
  if (stunAddress === null) return;
  const address = canonicalAddress(stunAddress);
  if (address === null) wrong(`${stunAddress} is not a numeric IPv4 or IPv6 address: give STUN a second address of this host`);
  else if (ALL.includes(address)) wrong(`STUN at ${stunAddress} would be at all addresses: give a second address of this host`);
  else if (host !== undefined && address === canonicalAddress(host))
    wrong(`${stunAddress} is the address of the base station: give STUN a second one of this host`);
  else if (stunPort === 0) wrong('a second address for STUN, but no STUN: leave out --stun-address, or --stun-port 0');
}

/** The STUN of one base station. */
export class Stun {
  readonly #environment: StunOptions['environment'];
  readonly #perAddress = new Rates(PER_ADDRESS, PER_ADDRESS_BURST);
  readonly #total = new TokenBucket(TOTAL, TOTAL);
  readonly #sockets: BoundSocket[] = [];
  readonly #servers: StunServer[] = [];
  /** Resolves when its sockets are open, as many as possible. Never rejects. */
  readonly opened: Promise<void>;
  #answered = 0;
  #waiting = 0;

  /** Begins to open its sockets. @param options checked by {@link checkStun} */
  constructor(options: StunOptions) {
    this.#environment = options.environment;
    this.opened = this.#open(options);
  }

  /**
   * The list announced to devices and clients: always the same array, complete once `opened`; empty while there is no
   * STUN.
   */
  get servers(): readonly StunServer[] {
    return this.#servers;
  }

  /** Number of answered requests. */
  get answered(): number {
    return this.#answered;
  }

  /** Closes the sockets. Answers on their way may be lost. */
  close(): void {
    for (const socket of this.#sockets) socket.close();
  }

  async #open({ mainPort, host, stunPort, stunAddress }: StunOptions): Promise<void> {
    if (stunPort === 0) return;
    const port = stunPort ?? mainPort + 1;
    await this.#listen(port, host);
    // There the socket for all addresses may already have the first port.
    if (stunAddress !== null && this.#servers.length > 0) await this.#listen(port + 1, stunAddress, stunAddress);
  }

  /** @param announced the announced address; absent if it is that of the base station */
  async #listen(port: number, host: string | undefined, announced?: string): Promise<void> {
    try {
      this.#sockets.push(await this.#bind(port, host));
      this.#servers.push({ ...(announced !== undefined && { address: announced }), port, responsePort: true });
    } catch (error) {
      const { code, message } = asSvcError(error);
      const reason = code === 'PORT_IN_USE' ? 'the port is in use' : message;
      const { log } = this.#environment;
      if (announced === undefined) log.warn('STUN is off: choose its port with --stun-port, or 0 to do without', { port, reason });
      else log.warn('STUN answers at one address alone: see --stun-address and --stun-port', { address: announced, port, reason });
    }
  }

  async #bind(port: number, host: string | undefined): Promise<BoundSocket> {
    if (port > MAX_PORT) throw new LocalError('INVALID_ARGUMENT', `there is no port ${port}`);
    let socket: BoundSocket | undefined;
    // The first family may receive before the second one is open.
    const receive = (datagram: Uint8Array, path: Path): void => socket && this.#receive(socket, datagram, path);
    socket = await this.#environment.network.bind({ port, receive, ...(host === undefined ? {} : { host }) });
    return socket;
  }

  #receive(socket: BoundSocket, datagram: Uint8Array, path: Path): void {
    const port = answerPort(datagram, path.port);
    if (port === 0 || this.#waiting >= MAX_WAITING || !this.#admit(path)) return;
    const answer = encodeBindingAnswer(datagram, path);
    this.#answered++;
    this.#waiting++;
    socket.send(answer, 0, answer.length, port === path.port ? path : socket.path(path.address, port), this.#released);
  }

  /** The total rate is checked first: above it, forged sources cost no memory. */
  #admit(path: Path): boolean {
    const now = this.#environment.clock.now();
    if (!this.#total.take(1, now)) return false;
    if (this.#perAddress.take(addressKey(path), now) === 0) return true;
    this.#total.put(1);
    return false;
  }

  readonly #released = (): void => {
    this.#waiting--;
  };
}
