/**
 * Keeps the base station's list of server connect tokens equal to the device's, from attach to the end of the channel.
 *
 * - The attach carries a digest of the list; a base station that knows it needs no upload.
 * - A change is uploaded at once, further ones after a pause: several changes share one upload, and a quick series
 *   stays below the rate that a base station accepts.
 * - A refused upload is retried after the base station's Max-Age and a back-off. It never ends the channel: clients
 *   whose tokens the base station has stay connected.
 */

import type { Environment } from '../platform/environment.ts';
import {
  type AttachGrant,
  CONTENT_FORMAT_CBOR,
  DevicePath,
  digestOfTokens,
  encodeTokens,
  MAX_SCTS,
  stationError,
} from '../protocol/control/index.ts';
import { asSvcError, type SvcError } from '../protocol/errors/index.ts';
import type { Session } from '../runtime/session/index.ts';
import { Backoff } from '../runtime/station/index.ts';
import type { ServerConnectTokens } from './tokens.ts';

/** Tokens that a base station accepts if it names no limit. */
export const DEFAULT_MOST = 100;
/** ms between two uploads. */
const PAUSE = 250;
/** Longest wait that a base station can ask for, ms. */
const LONGEST_WAIT = 3_600_000;

/** The digest that the device sends when it attaches. */
interface Shown {
  readonly digest: Uint8Array;
  /** Version of the list in the digest. */
  readonly version: number;
}

export class TokenUpload {
  readonly #environment: Environment;
  readonly #tokens: ServerConnectTokens;
  readonly #backoff: Backoff;
  /** The channel; null while there is none. */
  #session: Session | null = null;
  /** Whether an upload is under way, or the pause after one. */
  #busy = false;
  #endPause = (): void => {};
  /** Whether a refusal has been logged since the last accepted upload. */
  #logged = false;
  /** Whether the list is over the base station's limit; that has been logged. */
  #overfull = false;

  constructor(environment: Environment, tokens: ServerConnectTokens) {
    this.#environment = environment;
    this.#tokens = tokens;
    this.#backoff = new Backoff(environment.crypto);
  }

  /** Returns the digest for the attach request. */
  show(): Shown {
    const { listed, version } = this.#tokens;
    return { digest: digestOfTokens(listed, this.#environment.crypto), version };
  }

  /**
   * Handles an accepted attach. Resolves when the base station has the list, or has refused it.
   * @throws as `Session.request`
   */
  async attached(session: Session, { version }: Shown, { maxTokens, tokensKnown }: AttachGrant): Promise<void> {
    this.ended();
    this.#session = session;
    this.#tokens.limit(Math.min(maxTokens ?? DEFAULT_MOST, MAX_SCTS));
    this.#logRoom();
    // If the digest was unknown, an empty list is uploaded too: tokens that the device has removed must stop working. A
    // limit that cuts the list changes its version.
    this.#tokens.uploadedVersion(tokensKnown ? version : null);
    this.#busy = true;
    const wait = this.#tokens.uploaded ? 0 : await this.#upload(session);
    // No pause after the attach's own upload, so that a user invited right then can connect at once.
    void this.#continue(session, this.#tokens.uploaded ? 0 : wait);
  }

  /** Uploads the changed list. */
  changed(): void {
    this.#logRoom();
    if (this.#session === null || this.#busy) return;
    this.#busy = true;
    void this.#continue(this.#session, 0);
  }

  /** Notes that the channel has ended. */
  ended(): void {
    this.#session = null;
    this.#busy = false;
    this.#backoff.reset();
    this.#endPause();
  }

  /**
   * Uploads until the base station has the list or the channel ends. The channel may end before the attach is complete;
   * then `ended` is not called.
   * @param wait ms before the first upload
   */
  async #continue(session: Session, wait: number): Promise<void> {
    await this.#pause(wait);
    while (this.#session === session && session.isOpen && !this.#tokens.uploaded) await this.#pause(await this.#tryUpload(session));
    if (this.#session === session) this.#busy = false;
  }

  /** @returns ms until the next upload */
  async #tryUpload(session: Session): Promise<number> {
    try {
      return await this.#upload(session);
    } catch (error) {
      return session.isOpen ? this.#failed(asSvcError(error)) : 0;
    }
  }

  async #upload(session: Session): Promise<number> {
    const { listed, version } = this.#tokens;
    const response = await session.request({
      method: 'PUT',
      path: DevicePath.SCT,
      contentFormat: CONTENT_FORMAT_CBOR,
      payload: encodeTokens(listed),
    });
    if (this.#session !== session) return 0;
    if (response.status >= 300) return this.#failed(stationError(response), response.maxAge);
    this.#tokens.uploadedVersion(version);
    this.#backoff.reset();
    this.#logged = false;
    return PAUSE;
  }

  /** Handles a failed upload. @param maxAge seconds that the base station requests */
  #failed({ code, message }: SvcError, maxAge = 0): number {
    const wait = Math.max(PAUSE, Math.min(maxAge * 1000, LONGEST_WAIT)) + this.#backoff.next();
    const level = this.#logged ? 'debug' : 'warn';
    this.#logged = true;
    this.#environment.log[level]('the base station did not take the server connect tokens', {
      reason: message,
      code,
      nextTryMs: Math.round(wait),
    });
    return wait;
  }

  #logRoom(): void {
    const { log } = this.#environment;
    const { listed, omitted } = this.#tokens;
    const overfull = omitted.length > 0;
    if (overfull && !this.#overfull)
      log.warn('the base station has no room for all server connect tokens; clients with one of the others reach the device locally only', {
        room: listed.length,
        others: omitted.length,
      });
    else if (!overfull && this.#overfull) log.info('the base station has room for all server connect tokens again');
    this.#overfull = overfull;
  }

  #pause(wait: number): Promise<void> {
    if (wait === 0) return Promise.resolve();
    return new Promise((resolve) => {
      const cancel = this.#environment.clock.schedule(wait, resolve);
      this.#endPause = () => {
        cancel();
        resolve();
      };
    });
  }
}
