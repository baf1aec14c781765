/**
 * How a base station is proved before it is dialled: by the fingerprint that the application pinned, or, without one, by TLS.
 *
 * 1. With a pin that is all: nothing is fetched, and nothing replaces it.
 * 2. Without one the document at `https://host:port/.well-known/svc` is fetched (PROTOCOL.md §7), whose server must prove by its certificate that it is `host`.
 *    It names the key to dial and its UDP port. One fetch at a time is shared by all who wait.
 * 3. It is kept until it expires, 7 days at most, in memory.
 * 4. Where another key answers than it names, it is asked for again (`changed`): once for each attempt, which the caller keeps to.
 *
 * What cannot be proved is not dialled: each failure is the caller's error.
 */
import { asSvcError, LocalError, RemoteError } from '../../protocol/errors/index.ts';
import { decodeStationDocument, MAX_STATION_DOCUMENT, STATION_DOCUMENT_PATH } from '../../protocol/records/index.ts';
import type { Environment } from '../environment.ts';
import type { ConfiguredStation, StationAddress } from './station-address.ts';

/** By what a base station is proved. */
export type StationVerification = 'pinned' | 'tls';

/** ms for the document. */
const TIMEOUT = 5_000;

/** What is told in the place of another key. */
const TELLING: readonly string[] = ['CERTIFICATE_VALIDATION_FAILED', 'STOPPED'];

interface Kept {
  readonly address: StationAddress;
  /** Unix time, and time of the monotonic clock, until which it counts. */
  readonly expires: number;
  readonly until: number;
}

interface Fetch {
  readonly result: Promise<StationAddress>;
  readonly stop: AbortController;
}

/** The proof of one configured station. */
export class StationProof {
  readonly #environment: Environment;
  readonly #station: ConfiguredStation;
  /** What documents named, to tell it from the target of a redirect. */
  readonly #named = new WeakSet<StationAddress>();
  #kept: Kept | null = null;
  #fetch: Fetch | null = null;

  constructor(environment: Environment, station: ConfiguredStation) {
    this.#environment = environment;
    this.#station = station;
  }

  /**
   * Whom to dial.
   * @throws RemoteError CERTIFICATE_VALIDATION_FAILED, DNS, CONNECTION_REFUSED, TIMEOUT, BAD_RESPONSE (no such document, or one that cannot be used);
   * LocalError STOPPED; NOT_IMPLEMENTED where the host has no https
   */
  async current(): Promise<StationAddress> {
    const { host, port, fingerprint } = this.#station;
    if (fingerprint !== null) return { host, port, fingerprint, urlPort: port };
    const { clock } = this.#environment;
    const kept = this.#kept;
    if (kept !== null && clock.wallTime() < kept.expires && clock.now() < kept.until) return kept.address;
    return this.#ask();
  }

  /**
   * Another key than that of `address` answered.
   * @returns whom to dial instead; null where the document names the same still or cannot be had now, and for a pin or the target of a redirect: then the
   * other key is what is wrong
   * @throws RemoteError CERTIFICATE_VALIDATION_FAILED; LocalError STOPPED
   */
  async changed(address: StationAddress): Promise<StationAddress | null> {
    if (!this.#named.has(address)) return null;
    const others = this.#kept !== null && this.#kept.address !== address;
    let now: StationAddress;
    try {
      now = others ? await this.current() : await this.#ask(true);
    } catch (error) {
      if (TELLING.includes(asSvcError(error).code)) throw error;
      return null;
    }
    return now.fingerprint === address.fingerprint && now.port === address.port ? null : now;
  }

  /** Ends a fetch that is under way: who waits for it gets STOPPED. The proof can be used again. */
  stop(): void {
    this.#fetch?.stop.abort();
  }

  /** @param fresh a document that a cache has kept does not do */
  #ask(fresh = false): Promise<StationAddress> {
    if (this.#fetch !== null) return this.#fetch.result;
    const stop = new AbortController();
    const result = this.#fetchDocument(stop.signal, fresh).finally(() => {
      this.#fetch = null;
    });
    this.#fetch = { result, stop };
    return result;
  }

  async #fetchDocument(signal: AbortSignal, fresh: boolean): Promise<StationAddress> {
    const { clock, getHttps } = this.#environment;
    const { host, port, rootCerts } = this.#station;
    if (getHttps === undefined) throw new LocalError('NOT_IMPLEMENTED', 'this host has no https: give the fingerprint of the base station');
    const url = `https://${host.includes(':') ? `[${host}]` : host}:${port}${STATION_DOCUMENT_PATH}`;
    const answer = await getHttps({
      url,
      timeout: TIMEOUT,
      limit: MAX_STATION_DOCUMENT,
      signal,
      fresh,
      ...(rootCerts !== undefined && { rootCerts }),
    });
    if (answer.status !== 200) throw new RemoteError('BAD_RESPONSE', `${host} answered ${answer.status} by https, not 200`);
    const now = clock.wallTime();
    const { fingerprint, port: udpPort, expires } = decodeStationDocument(answer.body, now);
    const address = { host, port: udpPort, fingerprint, urlPort: port };
    this.#named.add(address);
    this.#kept = { address, expires, until: clock.now() + expires - now };
    return address;
  }
}
