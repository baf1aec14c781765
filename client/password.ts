/**
 * The client's side of password authentication (PROTOCOL.md §8): two requests, and the device is trusted only if its
 * tag is right.
 */
import { type CoapResponse, DEFAULT_TIMEOUT, formatStatus } from '../protocol/coap/index.ts';
import type { CryptoProvider } from '../protocol/crypto-provider.ts';
import { LocalError, RemoteError } from '../protocol/errors/index.ts';
import type { ClientRun } from '../protocol/password/exchange.ts';
import { deriveValue, passwordBytes } from '../protocol/password/kdf.ts';
import { loadExchange } from '../protocol/password/load.ts';
import * as messages from '../protocol/password/messages.ts';
import { opaqueString } from '../protocol/password/opaque-string.ts';
import { CONTENT_FORMAT_CBOR } from '../protocol/records/index.ts';
import type { Session } from '../runtime/session/index.ts';
import { decodeResponse } from './decode-response.ts';
import { whileConnected } from './while-connected.ts';

const failures: Readonly<Record<number, readonly ['UNAUTHORIZED' | 'NOT_FOUND' | 'TOO_MANY_REQUESTS', string]>> = {
  401: ['UNAUTHORIZED', 'the user name or the password is wrong'],
  404: ['NOT_FOUND', 'the device has no password authentication'],
  429: ['TOO_MANY_REQUESTS', 'too many login attempts: try again later'],
};

const EXCHANGE = 'password authentication';

/** Logins over one session, one at a time. */
export class PasswordAuthentication {
  readonly #session: Session;
  readonly #crypto: CryptoProvider;
  #lastRun = 0;
  #running = false;

  constructor(session: Session, crypto: CryptoProvider) {
    this.#session = session;
    this.#crypto = crypto;
  }

  /**
   * Proves the password to the device and lets the device prove it.
   * @throws UNAUTHORIZED; NOT_FOUND; TOO_MANY_REQUESTS; OPERATION_IN_PROGRESS; INVALID_ARGUMENT; BAD_RESPONSE; TIMEOUT;
   *   STOPPED when the connection ended meanwhile
   */
  async run(username: string, secret: string): Promise<void> {
    if (this.#running) throw new LocalError('OPERATION_IN_PROGRESS', 'a password authentication is already running on this connection');
    const name = checkedUsername(username);
    const bytes = passwordBytes(secret);
    this.#running = true;
    try {
      await whileConnected(this.#session, () => this.#exchange(name, bytes));
    } finally {
      bytes.fill(0);
      this.#running = false;
    }
  }

  async #exchange(username: string, secret: Uint8Array): Promise<void> {
    const request = messages.encodePasswordRequest({ username });
    const [first, { ClientRun }] = await Promise.all([this.#post(messages.PasswordPath.FIRST, request), loadExchange()]);
    const offer = decodeResponse(EXCHANGE, messages.decodePasswordOffer, first.payload);
    if (offer.run <= this.#lastRun) throw new RemoteError('BAD_RESPONSE', 'the device used the number of a password run twice');
    this.#lastRun = offer.run;
    const run = await this.#answer(ClientRun, username, secret, offer);
    const answer = await this.#post(messages.PasswordPath.SECOND, messages.encodePasswordProof(run.proof));
    const { tag } = decodeResponse(EXCHANGE, messages.decodePasswordConfirmation, answer.payload);
    if (!run.verify(tag)) throw new RemoteError('UNAUTHORIZED', 'the device did not prove that it knows the password');
    this.#session.peer.markVerified('password');
  }

  async #answer(
    Run: typeof ClientRun,
    username: string,
    secret: Uint8Array,
    { kdf, salt, run, share }: messages.PasswordOffer,
  ): Promise<ClientRun> {
    const value = await deriveValue(this.#crypto, secret, salt);
    if (!this.#session.isOpen) throw new LocalError('STOPPED', 'the connection ended');
    const { localFingerprint, peer } = this.#session;
    const { handshakeHash, fingerprint: remoteFingerprint, info } = peer;
    const names = { productId: String(info.ProductId), deviceId: String(info.DeviceId), username };
    const binding = { handshakeHash, run, clientFingerprint: localFingerprint, deviceFingerprint: remoteFingerprint, ...names };
    const answer = Run.answer(this.#crypto, binding, kdf, value, share);
    value.fill(0);
    if (answer === null) throw new RemoteError('BAD_RESPONSE', 'the share of the device is not an element of the group');
    return answer;
  }

  async #post(path: string, payload: Uint8Array): Promise<CoapResponse> {
    const request = { method: 'POST', path, contentFormat: CONTENT_FORMAT_CBOR, payload, timeout: DEFAULT_TIMEOUT } as const;
    const response = await this.#session.request(request);
    if (response.status === 201) return response;
    const [code, message] = failures[response.status] ?? ['BAD_RESPONSE', `${EXCHANGE} was answered ${formatStatus(response.status)}`];
    throw new RemoteError(code, message);
  }
}

function checkedUsername(given: string): string {
  const username = opaqueString('the user name', given);
  if (new TextEncoder().encode(username).length > messages.MAX_USERNAME) {
    throw new LocalError('INVALID_ARGUMENT', `a user name has at most ${messages.MAX_USERNAME} bytes of UTF-8`);
  }
  return username;
}
