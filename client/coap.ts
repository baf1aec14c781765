/**
 * One CoAP request to the device, in the specification's form: create it from a connection, set its payload, execute
 * it, read the response.
 *
 * Any response is a result, including 4.xx and 5.xx; only a missing response is an error. An object serves one request
 * at a time and can be executed again; the getters return the latest response. `observe` is a request that the resource
 * continues to answer (RFC 7641).
 */
import {
  bytesOf,
  callback,
  check,
  checkOptions,
  oneOf,
  optional,
  orNull,
  type Payload,
  signal,
  text,
  texts,
  whole,
  withMethods,
} from '../protocol/arguments.ts';
import { type CoapMethod, type CoapResponse, checkQuery, DEFAULT_TIMEOUT, MethodCode } from '../protocol/coap/index.ts';
import { LocalError, type SvcError } from '../protocol/errors/index.ts';
import type { Observation, Session, SessionRequest } from '../runtime/session/index.ts';
import { lossAsStopped, whileConnected } from './while-connected.ts';

/**
 * Content formats named by the specification, with their numbers (RFC 7252 §12.3, RFC 8949). Any other number up to
 * 65535 works as well.
 */
export const ContentFormat = {
  TEXT_PLAIN: 0,
  APPLICATION_LINK_FORMAT: 40,
  APPLICATION_XML: 41,
  APPLICATION_OCTET_STREAM: 42,
  APPLICATION_JSON: 50,
  APPLICATION_CBOR: 60,
} as const;

const METHOD = oneOf(Object.keys(MethodCode));
const CONTENT_FORMAT = orNull(whole(0, 0xffff));
const OPTIONS = { signal };

/** Receives the answers of an observed resource. */
export interface CoapObserver {
  /**
   * Called for the first response and each notification. Quick changes may share a notification, which carries the
   * newest state.
   */
  onResponse(response: CoapResponse): void;
  /**
   * Called once when no more answers will come, unless the observation was cancelled: null when the last response ended
   * it (an error status, or a resource that cannot be observed), else the reason (STOPPED: the connection was closed or
   * lost; TIMEOUT: no first response; BAD_RESPONSE).
   */
  onEnd?(error: SvcError | null): void;
}

/** One CoAP request and its latest response. Created by `Connection.createCoap`. */
export class Coap {
  readonly #session: () => Session;
  readonly #method: CoapMethod;
  readonly #path: string;
  #payload: { contentFormat?: number; payload: Uint8Array } | null = null;
  #query: readonly string[] = [];
  #response: CoapResponse | null = null;
  #executing = false;

  /**
   * For `Connection.createCoap`. `session` returns the open session, or throws NOT_CONNECTED or STOPPED.
   * @throws LocalError INVALID_ARGUMENT for another method, or a path that does not start with `/`
   */
  constructor(session: () => Session, method: string, path: string) {
    check('the CoAP method', method, METHOD);
    check('the CoAP path', path, text);
    if (!path.startsWith('/')) throw new LocalError('INVALID_ARGUMENT', `the CoAP path must start with "/", not ${JSON.stringify(path)}`);
    this.#session = session;
    this.#method = method as CoapMethod;
    this.#path = path;
  }

  /**
   * Sets the payload of the request; default none. Text is sent as UTF-8. The bytes are read at each `execute`.
   * @param contentFormat 0 to 65535, see {@link ContentFormat}; null for none
   * @throws LocalError INVALID_ARGUMENT
   */
  setRequestPayload(contentFormat: number | null, payload: Payload): void {
    check('the content format', contentFormat, CONTENT_FORMAT);
    this.#payload = { payload: bytesOf('the payload of a CoAP request', payload), ...(contentFormat !== null && { contentFormat }) };
  }

  /**
   * Sets the arguments of the query (RFC 7252 §6.4), decoded, usually `name=value`; default none. A resource that takes
   * no query answers 4.00.
   * @throws LocalError INVALID_ARGUMENT for more than 512 bytes, an argument of more than 255, or one that is not text
   */
  setRequestQuery(query: readonly string[]): void {
    check('the query', query, texts);
    this.#query = [...checkQuery(query)];
  }

  /**
   * Sends the request, waits at most 2 minutes and returns the response; the getters return its parts.
   * @throws INVALID_ARGUMENT; TIMEOUT; STOPPED when `signal` fires, or the connection was closed or lost;
   *   NOT_CONNECTED; OPERATION_IN_PROGRESS; BAD_RESPONSE when the answer is malformed
   */
  async execute(options: { signal?: AbortSignal } = {}): Promise<CoapResponse> {
    checkOptions('a CoAP request', options, OPTIONS);
    if (this.#executing) throw new LocalError('OPERATION_IN_PROGRESS', 'this CoAP request is already being executed');
    const session = this.#session();
    this.#executing = true;
    try {
      const response = await whileConnected(session, () => session.request(this.#request(options)));
      this.#response = response;
      return response;
    } finally {
      this.#executing = false;
    }
  }

  /**
   * Observes the resource (RFC 7641), with GET or POST; the getters do not return its answers. Ends with `cancel`, with
   * `signal`, when the device ends it, and with the connection.
   * @throws LocalError INVALID_ARGUMENT for another method; NOT_CONNECTED; STOPPED when `signal` has fired or the
   *   connection is closed
   */
  observe(observer: CoapObserver, options: { signal?: AbortSignal } = {}): Observation {
    check('the observer', observer, withMethods('onResponse'));
    check('onEnd of the observer', observer.onEnd, optional(callback));
    checkOptions('an observation', options, OPTIONS);
    if (this.#method !== 'GET' && this.#method !== 'POST')
      throw new LocalError('INVALID_ARGUMENT', `only GET and POST can observe, not ${this.#method}`);
    const session = this.#session();
    const end = (error: SvcError | null): void => observer.onEnd?.(error === null ? null : lossAsStopped(session, error));
    return session.observe(this.#request(options), (response) => observer.onResponse(response), end);
  }

  /**
   * Returns the whole latest response, with fields that have no getter (Max-Age).
   * @throws LocalError INVALID_STATE before a response
   */
  getResponse(): CoapResponse {
    return this.#latest();
  }

  /**
   * Returns the status as class × 100 + detail: 205 is 2.05 Content.
   * @throws LocalError INVALID_STATE before a response
   */
  getResponseStatusCode(): number {
    return this.#latest().status;
  }

  /** @throws LocalError INVALID_STATE before a response, NO_DATA when it has no content format */
  getResponseContentFormat(): number {
    const { contentFormat } = this.#latest();
    if (contentFormat === undefined) throw new LocalError('NO_DATA', 'the response has no content format');
    return contentFormat;
  }

  /** @throws LocalError INVALID_STATE before a response, NO_DATA when it has no payload */
  getResponsePayload(): Uint8Array {
    const { payload } = this.#latest();
    if (payload === undefined || payload.length === 0) throw new LocalError('NO_DATA', 'the response has no payload');
    return payload;
  }

  #request(options: { signal?: AbortSignal }): SessionRequest {
    return { method: this.#method, path: this.#path, query: this.#query, ...this.#payload, timeout: DEFAULT_TIMEOUT, ...options };
  }

  #latest(): CoapResponse {
    if (this.#response === null) throw new LocalError('INVALID_STATE', 'there is no response yet: execute the request first');
    return this.#response;
  }
}
