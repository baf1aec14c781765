/**
 * Reaches a host by https or WebSocket through a proxy: `HTTPS_PROXY`, or `ALL_PROXY` (for `ws:` also `HTTP_PROXY`),
 * unless `NO_PROXY` excludes the host, and CONNECT (RFC 9110 §9.3.6).
 *
 * What the proxy answers before the tunnel is open does not come from the host: any status but 2xx ends the request.
 * Node's own client sends the CONNECT: it limits the headers of the answer and ends the attempt with the signal.
 * https-proxy-agent (9.1) does neither, and prints the proxy's password under DEBUG.
 */
import type { IncomingHttpHeaders, RequestOptions } from 'node:http';
import type { Duplex } from 'node:stream';
import type { ConnectionOptions } from 'node:tls';
import { LocalError, RemoteError } from '../../protocol/errors/index.ts';
import { orElse } from '../../protocol/or-else.ts';
import { httpsProblem, noteCertificates } from './https-problem.ts';
import type { NotedLookup } from './noted-lookup.ts';

/** In the order of `proxy-from-env`: the first that is set applies. */
const VARIABLES = ['https_proxy', 'HTTPS_PROXY', 'all_proxy', 'ALL_PROXY'];

const PLAIN_VARIABLES = ['http_proxy', 'HTTP_PROXY'];

/** A proxy between this host and others. */
export interface HttpProxy {
  readonly url: URL;
  /** The environment variable that names it. */
  readonly variable: string;
}

/**
 * Returns the proxy for an https URL; null if the host is reached directly. @throws LocalError INVALID_ARGUMENT for one
 * that does not speak HTTP
 */
export async function proxyFor(url: string): Promise<HttpProxy | null> {
  const variable = firstSet(VARIABLES);
  if (variable === undefined) return null;
  const { getProxyForUrl } = await import('proxy-from-env');
  // One without a scheme would get that of the URL; other programs treat it as an http proxy.
  return checkedProxy(withScheme(getProxyForUrl(url)), variable);
}

/**
 * Returns the proxy for a WebSocket URL. `ws:` needs a tunnel as `wss:` does, so the same proxy applies; `HTTP_PROXY`
 * if there is no other.
 * @throws as {@link proxyFor}
 */
export async function proxyForWebSocket({ protocol, hostname, port }: URL): Promise<HttpProxy | null> {
  const isSecure = protocol === 'wss:';
  const host = `${hostname}:${port || (isSecure ? 443 : 80)}`;
  const proxy = await proxyFor(`https://${host}`);
  const variable = firstSet(PLAIN_VARIABLES);
  if (proxy !== null || isSecure || variable === undefined) return proxy;
  return checkedProxy((await import('proxy-from-env')).getProxyForUrl(`http://${host}`), variable);
}

function firstSet(names: readonly string[]): string | undefined {
  return names.find((name) => process.env[name]);
}

/** @param proxy '' for none */
function checkedProxy(proxy: string, variable: string): HttpProxy | null {
  if (proxy === '') return null;
  // The text after an unencoded one is parsed as a path, and the text before it as host and port: an error would reveal
  // them.
  if (/^\w+:\/\/[^@]*[/?#\\].*@/.test(proxy))
    throw new LocalError(
      'INVALID_ARGUMENT',
      `the name or password in ${variable} has a "/", "?", "#" or "\\": write it as %2F, %3F, %23 or %5C`,
    );
  if (!/^https?:$/.test(URL.canParse(proxy) ? new URL(proxy).protocol : ''))
    throw new LocalError(
      'INVALID_ARGUMENT',
      `the proxy of ${variable} must be http://host:port or https://host:port, and no SOCKS proxy; NO_PROXY excepts a host`,
    );
  const parsed = new URL(proxy);
  if (orElse(() => authorization(parsed), undefined) === undefined)
    throw new LocalError(
      'INVALID_ARGUMENT',
      `the name or password in ${variable} has a "%" that begins no percent-encoding: write it as %25`,
    );
  return { url: parsed, variable };
}

/** To a proxy without a scheme the library gives that of the URL; other programs treat it as one that speaks HTTP. */
function withScheme(proxy: string): string {
  const isBare = VARIABLES.some((name) => `https://${process.env[name]}` === proxy);
  return isBare ? proxy.replace(/^https:/, 'http:') : proxy;
}

/** One attempt to reach a host. */
export interface Attempt {
  readonly signal: AbortSignal;
  readonly names: NotedLookup;
}

/**
 * Opens a connection through `proxy` to the host and port of `url`, which is not authenticated yet.
 * @param attempt its signal ends it; the caller closes an open tunnel
 * @throws RemoteError CONNECTION_REFUSED when the proxy refuses; what {@link HttpsGet} throws where the proxy cannot be
 *   reached
 */
export async function openTunnel({ url: proxy, variable }: HttpProxy, url: URL, { signal, names }: Attempt): Promise<Duplex> {
  const { request } = proxy.protocol === 'https:' ? await import('node:https') : await import('node:http');
  const target = `${url.hostname}:${url.port || (url.protocol === 'ws:' ? 80 : 443)}`;
  const peer = `the proxy ${proxy.host}`;
  const options: RequestOptions & Pick<ConnectionOptions, 'rejectUnauthorized' | 'minVersion'> = {
    method: 'CONNECT',
    host: proxy.hostname.replace(/^\[|\]$/g, ''),
    port: proxy.port,
    path: target,
    headers: { host: target },
    agent: false,
    // The environment cannot disable it: the proxy receives a password.
    rejectUnauthorized: true,
    minVersion: 'TLSv1.2',
    signal,
    lookup: names.lookup,
  };
  return new Promise((resolve, reject) => {
    const connecting = request(options);
    // Not among the options, which NODE_DEBUG prints.
    const credentials = authorization(proxy);
    if (credentials !== null) connecting.setHeader('proxy-authorization', credentials);
    connecting.once('connect', ({ statusCode = 0, headers }, socket, early) => {
      const stands = statusCode >= 200 && statusCode < 300;
      if (stands && early.length === 0) return resolve(socket);
      socket.destroy();
      const login = wantsLogin(statusCode, headers);
      if (stands) return reject(new RemoteError('BAD_RESPONSE', `${peer} spoke before ${target} did${login}`));
      const remedy = statusCode === 407 ? wantsCredentials(proxy, variable) : login;
      reject(new RemoteError('CONNECTION_REFUSED', `${peer} refused to connect to ${target} (${statusCode})${remedy}`));
    });
    const chain = noteCertificates(connecting);
    connecting.once('error', (error) =>
      reject(httpsProblem(error, { peer, by: proxy.protocol === 'https:' ? 'https' : 'HTTP', request: connecting, chain: chain() })),
    );
    connecting.once('close', () => reject(new RemoteError('BAD_RESPONSE', `${peer} gave no answer`)));
    connecting.end();
  });
}

function wantsCredentials({ username, password }: URL, variable: string): string {
  if (username === '' && password === '') return ': it asks for a name and a password, as in http://name:password@host:port';
  return `: it does not take the name and password of ${variable}`;
}

/**
 * Signs of a captive portal: the status for unaccepted terms (RFC 6585 §6), a redirect to its login, or a page instead
 * of a tunnel.
 */
function wantsLogin(statusCode: number, headers: IncomingHttpHeaders): string {
  const isRedirect = statusCode >= 300 && statusCode < 400;
  const isLogin = statusCode === 511 || isRedirect || (statusCode < 300 && isPage(headers));
  return isLogin ? ': this network may want a login first, in a browser' : '';
}

/** Returns whether the body is a page for a browser. */
export function isPage({ 'content-type': type = '' }: IncomingHttpHeaders): boolean {
  return /html/i.test(type);
}

function authorization({ username, password }: URL): string | null {
  if (username === '' && password === '') return null;
  const [name, secret] = [decodeURIComponent(username), decodeURIComponent(password)];
  return `Basic ${Buffer.from(`${name}:${secret}`).toString('base64')}`;
}
