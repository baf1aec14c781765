/**
 * A WebSocket (RFC 6455) of this host as a pipe of binary messages, with the library `ws`, loaded when the first one
 * opens.
 *
 * 1. If a proxy applies, tunnel through it (`https-tunnel.ts`).
 * 2. TLS 1.2 or later for `wss:`. The certificate counts only if the options say so: the handshake inside authenticates
 *    the peer (PROTOCOL.md §2).
 * 3. Upgrade: the peer must choose the subprotocol. Redirects are not followed, nothing is compressed.
 * 4. A message over 65,535 bytes, or of text, ends it.
 */
import type { ClientRequest, IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { isIP, connect as netConnect, type Socket, type TcpNetConnectOpts } from 'node:net';
import type { Duplex } from 'node:stream';
import { checkServerIdentity, connect as tlsConnect } from 'node:tls';
import { type ClientOptions, WebSocket } from 'ws';
import { canonicalAddress } from '../../protocol/address.ts';
import { asSvcError, LocalError, RemoteError, type SvcError } from '../../protocol/errors/index.ts';
import { certificateBlocks } from '../../protocol/identity/index.ts';
import { NoUpgradeError } from '../../protocol/station-dial/index.ts';
import type { MessagePipe, WebSocketOptions } from '../environment.ts';
import { httpsProblem, noteCertificates } from './https-problem.ts';
import { type Attempt, type HttpProxy, isPage, openTunnel, proxyForWebSocket } from './https-tunnel.ts';
import { NotedLookup } from './noted-lookup.ts';
import { checkRootCertificates } from './root-certificates.ts';

/** Bytes of one message (PROTOCOL.md §2). */
const MAX_MESSAGE = 65_535;
/** Most fragments of a message, and pieces in which it may arrive: a proxy on the way may split it arbitrarily. */
const MAX_FRAGMENTS = 64;
const MAX_CHUNKS = 128;
/** ms for the peer's half of the closing handshake, which no caller awaits. */
const CLOSE_TIMEOUT = 1_000;
/** Times below this, in ms, were not chosen by a person and are not named. */
const MIN_TIME_NAMED = 100;
/** RFC 6455 §7.4.1. */
const NORMAL_CLOSURE = 1000;
const UNSUPPORTED_DATA = 1003;

/** @throws as `Network.openWebSocket` */
export async function openWebSocket(options: WebSocketOptions, index: number): Promise<MessagePipe> {
  const url = parsedUrl(options.url);
  if (options.rootCerts !== undefined) checkRootCertificates(options.rootCerts);
  const timeout = AbortSignal.timeout(Math.max(1, Math.ceil(options.timeout)));
  const signal = options.signal === undefined ? timeout : AbortSignal.any([timeout, options.signal]);
  const proxy = await proxyForWebSocket(url);
  const names = new NotedLookup();
  let tunnel: Duplex | null = null;
  try {
    signal.throwIfAborted();
    if (proxy !== null) tunnel = await openTunnel(proxy, url, { signal, names });
    return await upgraded(options, { url, index, tunnel, proxy: proxy?.url.host ?? null, signal, names });
  } catch (error) {
    tunnel?.destroy();
    if (options.signal?.aborted === true) throw new LocalError('STOPPED', 'opening the WebSocket was stopped');
    if (timeout.aborted) names.refuseSilent();
    if (timeout.aborted) throw late(url, proxy, tunnel !== null, options.timeout);
    throw error;
  }
}

/** The way to the peer. */
interface Way extends Attempt {
  readonly url: URL;
  readonly index: number;
  /** To the peer through the proxy; null: a connection of the library's own. */
  readonly tunnel: Duplex | null;
  readonly proxy: string | null;
}

function parsedUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url !== null && /^wss?:$/.test(url.protocol) && url.username === '' && url.password === '' && url.hash === '') return url;
  throw new LocalError(
    'INVALID_ARGUMENT',
    'the URL of a WebSocket is wss://host/path or ws://host/path, without a name, password or fragment',
  );
}

function late({ host }: URL, proxy: HttpProxy | null, isTunnelled: boolean, timeout: number): RemoteError {
  // The second of two URLs may have next to no time left.
  const time = timeout < MIN_TIME_NAMED ? 'in time' : `within ${Number((timeout / 1000).toPrecision(2))} s`;
  if (proxy !== null && !isTunnelled) return new RemoteError('TIMEOUT', `the proxy ${proxy.url.host} did not connect to ${host} ${time}`);
  const way = proxy === null ? '' : ` through the proxy ${proxy.url.host}`;
  return new RemoteError('TIMEOUT', `${host} did not open a WebSocket${way} ${time}`);
}

function upgraded(options: WebSocketOptions, way: Way): Promise<MessagePipe> {
  const { url, signal } = way;
  return new Promise((resolve, reject) => {
    let peer: Socket | null = null;
    let failedRequest = asSvcError;
    const finishRequest = (request: ClientRequest): void => {
      const chain = noteCertificates(request);
      failedRequest = (error) => httpsProblem(error, { peer: url.host, by: 'WebSocket', request, chain: chain() });
      request.end();
    };
    const webSocket = new WebSocket(url, [options.protocol], { ...libraryOptions(options, way), finishRequest });
    const stop = (): void => webSocket.terminate();
    const fail = (error: unknown): void => {
      signal.removeEventListener('abort', stop);
      reject(failedRequest(error));
    };
    webSocket.on('unexpected-response', (request, response) => {
      fail(refusal(way, response));
      request.destroy();
    });
    webSocket.on('upgrade', (response) => {
      peer = response.socket;
    });
    webSocket.on('error', fail);
    webSocket.on('open', () => {
      signal.removeEventListener('abort', stop);
      webSocket.off('error', fail);
      resolve(new Pipe(webSocket, peer, options, way));
    });
    signal.addEventListener('abort', stop, { once: true });
  });
}

/** Options missing from the library's types. */
type LibraryOptions = ClientOptions & { readonly closeTimeout: number; readonly maxFragments: number; readonly maxBufferedChunks: number };

function libraryOptions(options: WebSocketOptions, way: Way): LibraryOptions {
  return {
    perMessageDeflate: false,
    maxPayload: MAX_MESSAGE,
    maxFragments: MAX_FRAGMENTS,
    maxBufferedChunks: MAX_CHUNKS,
    followRedirects: false,
    closeTimeout: CLOSE_TIMEOUT,
    createConnection: () => connection(options, way) as Socket,
  };
}

/** Opens the connection below the upgrade. */
function connection({ verifyCertificate = false, rootCerts }: WebSocketOptions, { url, tunnel, names }: Way): Duplex {
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const isSecure = url.protocol === 'wss:';
  const to = tunnel === null ? { host, port: Number(url.port || (isSecure ? 443 : 80)), lookup: names.lookup } : { socket: tunnel };
  if (!isSecure) return tunnel ?? netConnect(to as TcpNetConnectOpts);
  return tlsConnect({
    ...to,
    servername: isIP(host) === 0 ? host : '',
    // Set in either case: the environment cannot disable it.
    rejectUnauthorized: verifyCertificate,
    minVersion: 'TLSv1.2',
    checkServerIdentity: (_, certificate) => checkServerIdentity(host, certificate),
    ...(rootCerts !== undefined && { ca: certificateBlocks(rootCerts) }),
  });
}

/** The answer is HTTP without an upgrade. */
function refusal({ url: { host }, proxy }: Way, { statusCode = 0, headers }: IncomingMessage): RemoteError {
  const through = proxy === null ? '' : ` through the proxy ${proxy}`;
  return new NoUpgradeError(statusCode, `${host} opens no WebSocket${through}, it answers ${statusCode}${remedyFor(statusCode, headers)}`);
}

function remedyFor(status: number, headers: IncomingHttpHeaders): string {
  if (status === 404) return ': is the path right?';
  if (status === 400 || status === 426)
    return ': a proxy in front of the base station may drop the request to upgrade. Have it use HTTP/1.1 and pass on Upgrade and Connection';
  if (status === 503) return ': it has no room for another one, or a proxy does not reach it; try again later';
  if (status === 502 || status === 504) return ': a proxy does not reach the base station behind it';
  if (status >= 300 && status < 400)
    return ': redirects are not followed. Give the URL that it leads to, unless this network wants a login first, in a browser';
  if (status === 511) return ': this network wants a login first, in a browser';
  if (status === 407) return ': a proxy on the way wants a login; name it with HTTPS_PROXY';
  return isPage(headers) ? ' and a page: a login page of this network, or a proxy, may stand in between' : '';
}

/** An open WebSocket. */
class Pipe implements MessagePipe {
  readonly index: number;
  readonly address: string;
  readonly port: number;
  readonly proxy: string | null;
  readonly #webSocket: WebSocket;
  readonly #unref: () => void;
  readonly #closed: (error: SvcError) => void;
  #isOpen = true;

  /** @param socket of the upgrade: TLS, or the one below */
  constructor(webSocket: WebSocket, socket: Socket | null, { receive, closed }: WebSocketOptions, { url, index, tunnel, proxy }: Way) {
    const peer = (tunnel as Socket | null) ?? socket;
    this.index = index;
    this.address = canonicalAddress(peer?.remoteAddress ?? '') ?? '';
    this.port = peer?.remotePort ?? 0;
    this.#unref = () => {
      for (const each of [socket, peer]) each?.unref();
    };
    this.proxy = proxy;
    this.#webSocket = webSocket;
    this.#closed = closed;
    let problem = '';
    webSocket.on('message', (data: Buffer, isBinary: boolean) => {
      if (!this.#isOpen) return;
      if (isBinary) receive(data);
      else this.#fail(new RemoteError('BAD_RESPONSE', `${url.host} sent text over the WebSocket`), UNSUPPORTED_DATA);
    });
    webSocket.on('error', ({ message }) => {
      problem = `: ${message}`;
    });
    webSocket.on('close', (code) => this.#fail(new RemoteError('CLOSED', `the WebSocket to ${url.host} ended with ${code}${problem}`)));
  }

  send(message: Uint8Array, sent: () => void): void {
    // Calls back for a closed one as well.
    this.#webSocket.send(message, { binary: true }, sent);
  }

  unref(): void {
    this.#unref();
  }

  close(code: number = NORMAL_CLOSURE): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#webSocket.close(code);
  }

  #fail(error: RemoteError, code?: number): void {
    if (!this.#isOpen) return;
    this.close(code);
    this.#closed(error);
  }
}
