/**
 * Relays a device's notification to the push provider's HTTP v1 interface, with the service account of the device's
 * organization, and returns the provider's answer.
 *
 * One notification has one idempotency key for all its attempts, and 100 s in total; then the provider's last answer is
 * returned. `retry.ts` decides about retries, `token-cache.ts` keeps tokens. The document is forwarded unread.
 */

import type { Environment } from '../../platform/environment.ts';
import { cutText, isUnregistered, MAX_PUSH_ANSWER, type PushAnswer, type PushRequest, tokenOf } from '../../protocol/control/index.ts';
import type { CryptoProvider } from '../../protocol/crypto-provider.ts';
import { LocalError, RemoteError } from '../../protocol/errors/index.ts';
import { pause } from '../../runtime/pause.ts';
import { type HttpAnswer, type HttpPost, withTimeout } from '../outbound/http.ts';
import type { PushCredential } from '../storage/outbound-store.ts';
import { credentialRecord, type Sealer } from '../storage/sealing.ts';
import type { Store } from '../storage/store.ts';
import { fetchToken, type SignAssertion, TokenRefused } from './account.ts';
import { type AttemptResult, PUSH_TIME, parseRetryAfter, retryDelay } from './retry.ts';
import { TokenCache } from './token-cache.ts';

/** An event that the operator's application may want to know. */
export interface PushEvent {
  /** The provider reports that this registration token is no longer in use. */
  readonly kind: 'push-token-unregistered';
  readonly productId: string;
  readonly deviceId: string;
  readonly projectId: string;
  /** The token in the device's document; null when it names none. */
  readonly token: string | null;
}

export interface PushRelayOptions {
  environment: Environment;
  store: Store;
  sealer: Sealer;
  post: HttpPost;
  sign: SignAssertion;
  signal: AbortSignal;
  onEvent: (event: PushEvent) => void;
}

/** ms for one HTTP exchange. */
const ATTEMPT_TIME = 20_000;
/** Bytes of the provider's answer that are read. */
const READ_LIMIT = 65_536;

/** Result of an attempt: an answer, or the reason for its absence. */
type Outcome = { answer: HttpAnswer } | { failure: RemoteError; attempted: AttemptResult };

export class PushRelay {
  readonly #options: PushRelayOptions;
  readonly #tokens = new TokenCache();

  constructor(options: PushRelayOptions) {
    this.#options = options;
  }

  /**
   * Sends a notification of an attached device.
   * @throws RemoteError FORBIDDEN (no credential for the project in the device's organization), TIMEOUT, BAD_RESPONSE
   *   (no answer); LocalError STOPPED
   */
  async send(device: { productId: string; deviceId: string }, { projectId, body }: PushRequest): Promise<PushAnswer> {
    const credential = await this.#credential(device.productId, projectId);
    const answer = await this.#deliver(credential, body);
    const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(answer.body);
    if (isUnregistered({ statusCode: answer.status, body: text })) this.#unregistered(device, projectId, body);
    return { statusCode: answer.status, body: cutText(text, MAX_PUSH_ANSWER) };
  }

  async #credential(productId: string, projectId: string): Promise<PushCredential> {
    const { store } = this.#options;
    const product = await store.product(productId);
    const found = product && (await store.outbound.pushCredential(product.organizationId, projectId));
    if (!found) throw new RemoteError('FORBIDDEN', 'this project has no push credential on the base station');
    return found;
  }

  /** @returns the provider's last answer */
  async #deliver(credential: PushCredential, body: string): Promise<HttpAnswer> {
    const { clock, crypto } = this.#options.environment;
    const begun = clock.now();
    const idempotencyKey = Buffer.from(crypto.randomBytes(16)).toString('hex');
    let last: HttpAnswer | null = null;
    for (let attempts = 1; ; attempts++) {
      const left = PUSH_TIME - (clock.now() - begun);
      const outcome = await this.#attempt(credential, { body, idempotencyKey, timeout: Math.min(ATTEMPT_TIME, left) });
      if ('answer' in outcome) last = outcome.answer;
      const attempted = 'failure' in outcome ? outcome.attempted : this.#describe(outcome.answer);
      const delay = retryDelay(attempted, attempts, clock.now() - begun, random(crypto));
      if (delay === null) return last ?? fail(outcome);
      await pause(clock, delay, this.#options.signal);
      if (this.#options.signal.aborted) throw new LocalError('STOPPED', 'the base station stops');
    }
  }

  #describe({ status, headers }: HttpAnswer): AttemptResult {
    return { status, retryAfter: parseRetryAfter(headers['retry-after'], this.#options.environment.clock.wallTime()) };
  }

  async #attempt(credential: PushCredential, request: { body: string; idempotencyKey: string; timeout: number }): Promise<Outcome> {
    const { clock } = this.#options.environment;
    const begun = clock.now();
    try {
      const token = await withTimeout(clock, request.timeout, this.#token(credential));
      const answer = await this.#post(credential, token, { ...request, timeout: request.timeout - (clock.now() - begun) });
      if (answer.status === 401) this.#tokens.drop(tokenKey(credential), token);
      return { answer };
    } catch (error) {
      if (!(error instanceof RemoteError)) throw error;
      const attempted = error instanceof TokenRefused ? this.#describe(error.answer) : { status: null, retryAfter: null };
      const { projectId } = credential;
      this.#options.environment.log.warn('push attempt failed', { project: projectId, reason: error.message });
      return { failure: error, attempted };
    }
  }

  #token(credential: PushCredential): Promise<string> {
    const { environment, sealer, signal } = this.#options;
    const { clock } = environment;
    return this.#tokens.get(
      tokenKey(credential),
      () => clock.now(),
      () => {
        const privateKey = sealer.open(credential.sealedKey, credentialRecord(credential));
        return fetchToken(this.#options, { ...credential, privateKey }, { wallTime: clock.wallTime(), timeout: ATTEMPT_TIME, signal });
      },
    );
  }

  #post(
    { baseUrl, projectId }: PushCredential,
    token: string,
    { body, idempotencyKey, timeout }: { body: string; idempotencyKey: string; timeout: number },
  ): Promise<HttpAnswer> {
    return this.#options.post({
      url: new URL(`${baseUrl}/v1/projects/${encodeURIComponent(projectId)}/messages:send`),
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json; charset=utf-8',
        // A string of structured fields (draft-ietf-httpapi-idempotency-key-header).
        'idempotency-key': `"${idempotencyKey}"`,
      },
      body,
      timeout,
      limit: READ_LIMIT,
      signal: this.#options.signal,
    });
  }

  #unregistered({ productId, deviceId }: { productId: string; deviceId: string }, projectId: string, body: string): void {
    const { environment, onEvent } = this.#options;
    environment.log.info('push token is no longer registered', { device: `${productId}.${deviceId}`, project: projectId });
    onEvent({ kind: 'push-token-unregistered', productId, deviceId, projectId, token: tokenOf(body) });
  }
}

/** Returns the cache key: another key of the same project is another entry. */
function tokenKey({ organizationId, projectId, sealedKey }: PushCredential): string {
  return `${organizationId} ${projectId} ${sealedKey.slice(0, 32)}`;
}

function fail(outcome: Outcome): never {
  throw 'failure' in outcome ? outcome.failure : new RemoteError('BAD_RESPONSE', 'the push provider did not answer');
}

/** Returns a random number from 0 to less than 1. */
function random(crypto: CryptoProvider): number {
  return Buffer.from(crypto.randomBytes(4)).readUInt32BE() / 2 ** 32;
}
