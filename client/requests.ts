/**
 * CoAP requests of a connection: what an application gives becomes a request, and its response an `Answer`.
 *
 * Every answer is a result, also 4.xx and 5.xx; only a missing one is an error.
 */

import {
  signal as aSignal,
  check,
  checkedBySetter,
  checkOptions,
  isPlain,
  type Kind,
  oneOf,
  text,
  textMap,
  texts,
  whole,
} from '../protocol/arguments.ts';
import { type Body, bodyOf } from '../protocol/body.ts';
import { decode } from '../protocol/cbor/index.ts';
import { type CoapMethod, type CoapResponse, checkQuery, DEFAULT_TIMEOUT, MethodCode } from '../protocol/coap/index.ts';
import { LocalError, RemoteError } from '../protocol/errors/index.ts';
import type { Session, SessionRequest } from '../runtime/session/index.ts';
import { Subscription } from '../runtime/subscription.ts';
import { decodeResponse } from './decode-response.ts';
import { lossAsStopped, whileConnected } from './while-connected.ts';

/** Options of a request. */
export interface RequestOptions {
  /** Text, which is sent as UTF-8; bytes; or an object, which is sent as CBOR. At most 1 MiB. */
  readonly body?: Body;
  /**
   * Content format of the body, 0 to 65,535 (RFC 7252 §12.3), or none. Default: 0 for text, 42 for bytes, 60 for an
   * object.
   */
  readonly format?: number | 'none';
  /**
   * Arguments of the query (RFC 7252 §6.4), decoded: an object, or texts such as `name=value`. At most 512 bytes, 255
   * each. A resource that takes no query answers 4.00.
   */
  readonly query?: Readonly<Record<string, string>> | readonly string[];
  /** Longest time until the answer, ms. Default 120,000. */
  readonly timeout?: number;
  /** Ends the request with STOPPED, or the observation. */
  readonly signal?: AbortSignal;
}

/** Options of an observation. */
export interface ObserveOptions extends RequestOptions {
  /** Default GET. */
  readonly method?: 'GET' | 'POST';
}

/** An answer of the device. */
export class Answer {
  /** Class × 100 + detail: 205 is 2.05 Content. */
  readonly status: number;
  /** Content format of the body (RFC 7252 §12.3), if the device named it. */
  readonly format: number | undefined;
  /** The body; empty without one. */
  readonly bytes: Uint8Array;
  /** Seconds for which the answer is fresh, if the device named it. */
  readonly maxAge: number | undefined;
  /** Number of the state, of a resource that is observed and stays so (RFC 7641 §3.4). */
  readonly sequence: number | undefined;

  /** For the connection. */
  constructor({ status, contentFormat, payload, maxAge, observe }: CoapResponse) {
    this.status = status;
    this.format = contentFormat;
    this.bytes = payload;
    this.maxAge = maxAge;
    this.sequence = observe;
  }

  /** Whether the status is 2.xx. */
  get ok(): boolean {
    return this.status < 300;
  }

  /** The body as UTF-8; invalid bytes become U+FFFD. */
  get text(): string {
    return new TextDecoder().decode(this.bytes);
  }

  /** Decodes the body as CBOR (RFC 8949). @throws RemoteError NO_DATA without a body; BAD_RESPONSE */
  cbor(): unknown {
    if (this.bytes.length === 0) throw new RemoteError('NO_DATA', 'the answer has no body');
    return decodeResponse('the answer', decode, this.bytes);
  }
}

const METHOD = oneOf(Object.keys(MethodCode));
const KINDS: Record<keyof RequestOptions, Kind> = {
  body: checkedBySetter,
  format: [(value) => value === 'none' || whole(0, 0xffff)[0](value), 'a number from 0 to 65535, or none'],
  query: [(value) => texts[0](value) || textMap[0](value), 'an object of texts, or an array of them'],
  timeout: whole(1, 0x7fff_ffff),
  signal: aSignal,
};

/** Checks a request of an application. @throws LocalError INVALID_ARGUMENT */
export function requestOf(method: string, path: string, options?: RequestOptions): SessionRequest {
  check('the CoAP method', method, METHOD);
  check('the CoAP path', path, text);
  if (!path.startsWith('/')) throw invalid(`the CoAP path must start with "/", not ${JSON.stringify(path)}`);
  if (options === undefined) return { method: method as CoapMethod, path, timeout: DEFAULT_TIMEOUT };
  checkOptions('a request', options, KINDS);
  const { body, format, query, timeout = DEFAULT_TIMEOUT, signal } = options;
  if (format !== undefined && body === undefined) throw invalid('the option format of a request has no effect without a body');
  return {
    method: method as CoapMethod,
    path,
    ...(query !== undefined && { query: [...checkQuery(argumentsOf(query))] }),
    ...(body !== undefined && contentOf(body, format)),
    ...(signal !== undefined && { signal }),
    timeout,
  };
}

function argumentsOf(query: NonNullable<RequestOptions['query']>): readonly string[] {
  return Array.isArray(query) ? query : Object.entries(query).map(([name, value]) => `${name}=${value}`);
}

function contentOf(body: Body, given: RequestOptions['format']): { payload: Uint8Array; contentFormat?: number } {
  const { bytes, format } = bodyOf('the body of a request', body);
  return { payload: bytes, ...(given !== 'none' && { contentFormat: given ?? format }) };
}

/** The options of a request whose body is an argument of its own. */
export function withBody(body: Body | undefined, options?: Omit<RequestOptions, 'body'>): RequestOptions | undefined {
  if (body === undefined) return options;
  return options === undefined || isPlain(options) ? { ...options, body } : options;
}

/** Checks an observation. @throws LocalError INVALID_ARGUMENT */
export function observationOf(path: string, options: ObserveOptions): SessionRequest {
  checkOptions('an observation', options, { ...KINDS, method: oneOf(['GET', 'POST']) });
  const { method = 'GET', ...request } = options;
  return requestOf(method, path, request);
}

/** Sends a request, see `Connection.request`. @param live returns the session, or throws NOT_CONNECTED or STOPPED */
export async function ask(live: () => Session, method: string, path: string, options?: RequestOptions): Promise<Answer> {
  const request = requestOf(method, path, options);
  const session = live();
  return new Answer(await whileConnected(session, () => session.request(request)));
}

/** Observes a resource, see `Connection.observe`. @throws LocalError NOT_CONNECTED */
export function observe(session: Session, { signal, ...request }: SessionRequest): Subscription<Answer> {
  let newest: Answer | undefined;
  let cancel = (): void => {};
  const take = (): Answer | undefined => {
    const answer = newest;
    newest = undefined;
    return answer;
  };
  const subscription: Subscription<Answer> = new Subscription({ take, ended: () => cancel() }, signal);
  if (signal?.aborted === true) return subscription;
  const observation = session.observe(
    request,
    (response) => {
      newest = new Answer(response);
      subscription.wake();
    },
    (error) => subscription.end(error === null ? 'ended' : lossAsStopped(session, error)),
  );
  cancel = observation.cancel;
  return subscription;
}

function invalid(message: string): LocalError {
  return new LocalError('INVALID_ARGUMENT', message);
}
