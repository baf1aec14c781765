/**
 * One HTTP request of the base station to the outside: bounded in time and size, on a connection of its own, redirects not followed.
 *
 * Nothing is taken from the environment (no proxy). Where the addresses of the host were checked before, they are given along and no name
 * is resolved again: what was checked is what is connected to.
 */
import { type ClientRequest, type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { isIPv6, type LookupFunction } from 'node:net';
import { LocalError, RemoteError } from '../../protocol/errors/index.ts';

export interface HttpGetRequest {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  /** ms from the call to the last byte of the answer. */
  readonly timeout: number;
  /** Bytes of the answer's body that are read; the rest is dropped. */
  readonly limit: number;
  /** Numeric addresses to connect to in the place of what the host name resolves to. */
  readonly addresses?: readonly string[];
  /** Fires: the call ends with STOPPED. */
  readonly signal?: AbortSignal;
}

export interface HttpRequest extends HttpGetRequest {
  readonly body: string | Uint8Array;
}

export interface HttpAnswer {
  readonly status: number;
  /** By lower-case name; of a repeated header the values joined with commas. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  /** The body was longer than the limit. */
  readonly cut: boolean;
}

/** @throws RemoteError TIMEOUT, BAD_RESPONSE (no connection, TLS, broken HTTP); LocalError STOPPED */
export type HttpPost = (request: HttpRequest) => Promise<HttpAnswer>;
/** @throws as {@link HttpPost} */
export type HttpGet = (request: HttpGetRequest) => Promise<HttpAnswer>;

/** Bytes of all headers of an answer. */
const HEADER_LIMIT = 16_384;

/** {@link HttpPost} over Node. */
export const nodePost: HttpPost = (request) => exchange(request, request.body);

/** {@link HttpGet} over Node. */
export const nodeGet: HttpGet = (request) => exchange(request);

/** Ends in its time whatever comes: a request that Node itself gave up tells nobody. */
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
      failed(new RemoteError('BAD_RESPONSE', 'the other side changes to another protocol'));
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
    // The environment cannot switch it off.
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

/** A lookup that knows only these addresses, in their order. */
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

/** The system's name of what happened: its message may hold addresses that are nobody's business on a device. */
function reason(error: Error): string {
  const { code } = error as NodeJS.ErrnoException;
  return `the other side cannot be reached or does not answer (${code ?? error.name})`;
}
