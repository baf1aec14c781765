/**
 * How a base station is proved before it is dialled: by the fingerprint that the application pinned, or, without one,
 * by TLS.
 *
 * 1. With a pin nothing is fetched, and nothing replaces it.
 * 2. Without one the document at `https://host:port/.well-known/svc` is fetched (PROTOCOL.md §7.8). The server's
 *    certificate must prove that it is `host`. The document names the key to dial and its UDP port. All callers share
 *    one fetch at a time.
 * 3. It is kept in memory until it expires, 7 days at most.
 * 4. If another key answers, the document is fetched again (`changed`): once for each attempt, which the caller
 *    ensures.
 *
 * A station that cannot be proved is not dialled: each failure is the caller's error.
 */

import type { Environment } from '../../platform/environment.ts';
import { asSvcError, LocalError, RemoteError } from '../../protocol/errors/index.ts';
import { decodeStationDocument, MAX_STATION_DOCUMENT, STATION_DOCUMENT_PATH } from '../../protocol/records/index.ts';
import type { ConfiguredStation, StationAddress } from './station-address.ts';

/** How a base station is proved. */
export type StationVerification = 'pinned' | 'tls';

/** ms for the document. */
export const TIMEOUT = 5_000;

/** Errors that are reported instead of the mismatched key. */
const DECISIVE: readonly string[] = ['CERTIFICATE_VALIDATION_FAILED', 'STOPPED'];

interface DocumentEntry {
  readonly address: StationAddress;
  /** Unix time, and monotonic time, until which the document is valid. */
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
  /** Addresses from documents, as opposed to targets of redirects. */
  readonly #named = new WeakSet<StationAddress>();
  #kept: DocumentEntry | null = null;
  #fetch: Fetch | null = null;

  constructor(environment: Environment, station: ConfiguredStation) {
    this.#environment = environment;
    this.#station = station;
  }

  /**
   * Returns the station to dial.
   * @throws RemoteError CERTIFICATE_VALIDATION_FAILED, DNS, CONNECTION_REFUSED, TIMEOUT, BAD_RESPONSE (no such
   *   document, or an unusable one); LocalError STOPPED; NOT_IMPLEMENTED where the host has no HTTPS
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
   * Call when another key than that of `address` answered.
   * @returns the station to dial instead; null if the document still names the same key or cannot be fetched, and for a
   *   pin or the target of a redirect: then the mismatch is the error
   * @throws RemoteError CERTIFICATE_VALIDATION_FAILED; LocalError STOPPED
   */
  async changed(address: StationAddress): Promise<StationAddress | null> {
    if (!this.#named.has(address)) return null;
    const others = this.#kept !== null && this.#kept.address !== address;
    let now: StationAddress;
    try {
      now = others ? await this.current() : await this.#ask(true);
    } catch (error) {
      if (DECISIVE.includes(asSvcError(error).code)) throw error;
      return null;
    }
    return now.fingerprint === address.fingerprint && now.port === address.port ? null : now;
  }

  /** Stops a fetch under way: its callers get STOPPED. The proof can be used again. */
  stop(): void {
    this.#fetch?.stop.abort();
  }

  /** @param fresh bypasses caches on the way */
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
