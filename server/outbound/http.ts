/**
 * One HTTP request of the base station to the outside: bounded in time and size, on its own connection, without
 * following redirects.
 *
 * The environment has no influence (no proxy). Where the addresses of the host were checked before, the caller passes
 * them and no name is resolved again, so the connection goes to a checked address.
 */
import { type ClientRequest, type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { isIPv6, type LookupFunction } from 'node:net';
import type { Clock } from '../../platform/environment.ts';
import { LocalError, RemoteError } from '../../protocol/errors/index.ts';

export interface HttpGetRequest {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  /** ms from the call to the last byte of the answer. */
  readonly timeout: number;
  /** Bytes read of the answer's body; the rest is dropped. */
  readonly limit: number;
  /** Numeric addresses to connect to, instead of resolving the host name. */
  readonly addresses?: readonly string[];
  /** Ends the call with STOPPED when it fires. */
  readonly signal?: AbortSignal;
}

export interface HttpRequest extends HttpGetRequest {
  readonly body: string | Uint8Array;
}

export interface HttpAnswer {
  readonly status: number;
  /** Headers by lower-case name; values of a repeated header are joined with commas. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  /** The body was longer than the limit. */
  readonly cut: boolean;
}

/** @throws RemoteError TIMEOUT, BAD_RESPONSE (no connection, TLS, broken HTTP); LocalError STOPPED */
export type HttpPost = (request: HttpRequest) => Promise<HttpAnswer>;
/** @throws as {@link HttpPost} */
export type HttpGet = (request: HttpGetRequest) => Promise<HttpAnswer>;

/** Most bytes of all headers of an answer. */
const HEADER_LIMIT = 16_384;

/** {@link HttpPost} with Node. */
export const nodePost: HttpPost = (request) => exchange(request, request.body);

/** {@link HttpGet} with Node. */
export const nodeGet: HttpGet = (request) => exchange(request);

/** Settles as `work`, or rejects with TIMEOUT after `time` ms; `work` is not cancelled. @throws RemoteError TIMEOUT */
export function withTimeout<T>(clock: Clock, time: number, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const cancel = clock.schedule(time, () => reject(new RemoteError('TIMEOUT', 'no answer in time')));
    work.then(resolve, reject).finally(cancel);
  });
}

/** Runs an exchange that always ends in time: when Node itself gives up a request, it may emit no event. */
function exchange(request: HttpGetRequest, body?: string | Uint8Array): Promise<HttpAnswer> {
  return new Promise((resolve, reject) => {
    const outgoing = open(request, body);
    const finished = (): void => {
      clearTimeout(timer);
      request.signal?.removeEventListener('abort', stop);
      outgoing.destroy();
    };
    const failed = (error: Error): void => {
      finished();
      reject(error instanceof RemoteError || error instanceof LocalError ? error : new RemoteError('BAD_RESPONSE', reason(error)));
    };
    const stop = (): void => failed(new LocalError('STOPPED', 'the base station stops'));
    const timer = setTimeout(() => failed(new RemoteError('TIMEOUT', 'no answer in time')), request.timeout);
    request.signal?.addEventListener('abort', stop, { once: true });
    outgoing.on('error', failed);
    outgoing.on('upgrade', (_incoming, socket) => {
      socket.destroy();
      failed(new RemoteError('BAD_RESPONSE', 'the server switches to another protocol'));
    });
    outgoing.on('response', (incoming) => {
      readBody(incoming, request.limit).then((read) => {
        finished();
        resolve({ status: incoming.statusCode ?? 0, headers: headersOf(incoming), ...read });
      }, failed);
    });
    if (request.signal?.aborted) stop();
    else outgoing.end(body);
  });
}

function open({ url, headers, addresses }: HttpGetRequest, body: string | Uint8Array | undefined): ClientRequest {
  const options = {
    method: body === undefined ? 'GET' : 'POST',
    headers: { 'accept-encoding': 'identity', ...headers, ...lengthOf(body), connection: 'close' },
    agent: false as const,
    // Explicit, so that the environment cannot switch it off.
    rejectUnauthorized: true,
    minVersion: 'TLSv1.2' as const,
    maxHeaderSize: HEADER_LIMIT,
    ...(addresses === undefined ? {} : { lookup: pinned(addresses) }),
  };
  return url.protocol === 'https:' ? requestHttps(url, options) : requestHttp(url, options);
}

function lengthOf(body: string | Uint8Array | undefined): Record<string, string> {
  if (body === undefined) return {};
  return { 'content-length': String(typeof body === 'string' ? Buffer.byteLength(body) : body.length) };
}

/** Returns a lookup that knows only these addresses, in their order. */
function pinned(addresses: readonly string[]): LookupFunction {
  const found = addresses.map((address) => ({ address, family: isIPv6(address) ? 6 : 4 }));
  return (_host, options, callback) => {
    const [first] = found;
    if (first === undefined) callback(new Error('no address'), '', 4);
    else if (options.all) callback(null, found);
    else callback(null, first.address, first.family);
  };
}

async function readBody(incoming: IncomingMessage, limit: number): Promise<{ body: Uint8Array; cut: boolean }> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of incoming as AsyncIterable<Uint8Array>) {
    chunks.push(chunk);
    length += chunk.length;
    if (length > limit) break;
  }
  return { body: new Uint8Array(Buffer.concat(chunks).subarray(0, limit)), cut: length > limit };
}

function headersOf({ headers }: IncomingMessage): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, Array.isArray(value) ? value.join(', ') : (value ?? '')]),
  );
}

/** Returns a message with the system's error code only: the message may hold addresses that a device must not see. */
function reason(error: Error): string {
  const { code } = error as NodeJS.ErrnoException;
  return `the server cannot be reached or does not answer (${code ?? error.name})`;
}
