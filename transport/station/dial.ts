/**
 * One attempt to reach a base station: resolve its name, try its addresses, take the first handshake that proves the station's key.
 *
 * Addresses are tried in the resolver's order, the next one STAGGER after the one before or as soon as that failed (RFC 8305 §5), so that a
 * dead IPv6 costs a quarter of a second and not a timeout. The others are given up when one wins.
 */
import type { Router } from '../../protocol/coap/index.ts';
import type { PrivateKey } from '../../protocol/crypto-host.ts';
import { asSvcError, LocalError, RemoteError, type SvcError } from '../../protocol/errors/index.ts';
import { Deferred } from '../deferred.ts';
import type { Cancel } from '../environment.ts';
import type { Dial, Host } from '../host/host.ts';
import type { Session } from '../session/session.ts';

/** Where a base station is and who it must be. */
export interface StationAddress {
  /** Name or numeric address. */
  host: string;
  port: number;
  /** Full hex fingerprint of its key. */
  fingerprint: string;
}

export interface StationDialOptions {
  /** ms for all of it: resolver and handshakes. */
  timeout: number;
  /** Our identity towards the station; default: the host's. */
  identity?: PrivateKey;
  /** Serves what the station asks. */
  router?: Router<Session>;
}

/** Redirects in a row that are followed (PROTOCOL.md §7). */
export const MAX_REDIRECTS = 5;

/** Addresses of one name that are tried. */
const MAX_ADDRESSES = 4;
/** ms between two of them. */
const STAGGER = 250;

/**
 * Starts the attempt. It fails with DNS; FINGERPRINT_MISMATCH when someone answered with another key; CONNECTION_REFUSED when nobody answered;
 * STOPPED when cancelled; INVALID_ARGUMENT.
 */
export function dialStation(host: Host, station: StationAddress, options: StationDialOptions): Dial {
  const dial = new StationDial(host, station, options);
  return { session: dial.result.promise, cancel: () => dial.fail(new LocalError('STOPPED', 'the connect was stopped')) };
}

class StationDial {
  readonly result = Deferred.quiet<Session>();
  readonly #host: Host;
  readonly #station: StationAddress;
  readonly #options: StationDialOptions;
  readonly #deadline: number;
  readonly #running = new Set<Dial>();
  readonly #errors: SvcError[] = [];
  #addresses: string[] | null = null;
  #cancelTimeout: Cancel;
  #cancelStagger: Cancel = () => {};
  #decided = false;

  constructor(host: Host, station: StationAddress, options: StationDialOptions) {
    const { clock } = host.environment;
    this.#host = host;
    this.#station = station;
    this.#options = options;
    this.#deadline = clock.now() + options.timeout;
    this.#cancelTimeout = clock.schedule(options.timeout, () => this.#timedOut());
    void this.#resolve();
  }

  fail(error: SvcError): void {
    if (this.#decided) return;
    this.#decide();
    this.result.reject(error);
  }

  async #resolve(): Promise<void> {
    try {
      const addresses = await this.#host.environment.network.resolve(this.#station.host);
      this.#addresses = addresses.slice(0, MAX_ADDRESSES);
      this.#next();
    } catch (error) {
      this.fail(asSvcError(error));
    }
  }

  /** Tries one more address, if there is one; fails when there is none and nothing is running. */
  #next(): void {
    this.#cancelStagger();
    if (this.#decided) return;
    const address = this.#addresses?.shift();
    if (address !== undefined) this.#try(address);
    else if (this.#running.size === 0) this.fail(this.#summary());
  }

  #try(address: string): void {
    const { clock } = this.#host.environment;
    const { port, fingerprint } = this.#station;
    const { identity, router } = this.#options;
    const target = { name: 'station', pin: fingerprint, timeout: Math.max(1, this.#deadline - clock.now()) };
    let dial: Dial;
    try {
      dial = this.#host.dial({ ...target, address, port, ...(identity && { identity }), ...(router && { router }) });
    } catch (error) {
      this.#errors.push(asSvcError(error));
      this.#next();
      return;
    }
    this.#running.add(dial);
    dial.session.then(
      (session) => this.#won(dial, session),
      (error: unknown) => this.#lost(dial, asSvcError(error)),
    );
    if ((this.#addresses?.length ?? 0) > 0) this.#cancelStagger = clock.schedule(STAGGER, () => this.#next());
  }

  #won(dial: Dial, session: Session): void {
    this.#running.delete(dial);
    if (this.#decided) {
      void session.close();
      return;
    }
    this.#decide();
    this.result.resolve(session);
  }

  #lost(dial: Dial, error: SvcError): void {
    this.#running.delete(dial);
    this.#errors.push(error);
    this.#next();
  }

  #decide(): void {
    this.#decided = true;
    this.#cancelTimeout();
    this.#cancelStagger();
    for (const dial of [...this.#running]) dial.cancel();
  }

  #timedOut(): void {
    if (this.#addresses === null) this.fail(new RemoteError('DNS', `the resolver does not answer for ${this.#station.host}`));
    else this.fail(this.#summary());
  }

  /** The error that says most: a wrong key before anything else, silence last. */
  #summary(): SvcError {
    const telling = this.#errors.filter((error) => error.code !== 'TIMEOUT');
    const wrongKey = telling.find((error) => error.code === 'FINGERPRINT_MISMATCH');
    const { host, port } = this.#station;
    return wrongKey ?? telling[0] ?? new RemoteError('CONNECTION_REFUSED', `no base station answers at ${host} port ${port}`);
  }
}
