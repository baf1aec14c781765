/**
 * The way to a host by https or WebSocket through a proxy: `HTTPS_PROXY`, or `ALL_PROXY` (for `ws:` also `HTTP_PROXY`), unless `NO_PROXY`
 * excepts the host, and CONNECT (RFC 9110 §9.3.6).
 *
 * What the proxy says before the tunnel stands is no answer of the host: anything but 2xx ends the request. Node's own client sends the CONNECT: it bounds the
 * headers of the answer and ends the attempt with the signal. https-proxy-agent (9.1) does neither, and prints the proxy's password under DEBUG.
 */
import type { IncomingHttpHeaders, RequestOptions } from 'node:http';
import type { Duplex } from 'node:stream';
import type { ConnectionOptions } from 'node:tls';
import { LocalError, RemoteError } from '../../protocol/errors/index.ts';
import { httpsProblem, noteCertificates } from './https-problem.ts';

/** In the order of `proxy-from-env`: the first that is set counts. */
const VARIABLES = ['https_proxy', 'HTTPS_PROXY', 'all_proxy', 'ALL_PROXY'];

const PLAIN_VARIABLES = ['http_proxy', 'HTTP_PROXY'];

/** What stands between this host and others. */
export interface HttpProxy {
  readonly url: URL;
  /** The variable of the environment that names it. */
  readonly variable: string;
}

/** The proxy for an https URL; null where the host is reached straight. @throws LocalError INVALID_ARGUMENT for one that does not speak HTTP */
export async function proxyFor(url: string): Promise<HttpProxy | null> {
  const variable = firstSet(VARIABLES);
  if (variable === undefined) return null;
  const { getProxyForUrl } = await import('proxy-from-env');
  // One without a scheme is given that of the URL: as an http proxy it is what others take it for.
  return checkedProxy(withScheme(getProxyForUrl(url)), variable);
}

/**
 * The proxy for a URL of a WebSocket. `ws:` needs a tunnel as `wss:` does, so the same proxy is asked; `HTTP_PROXY` where there is no other.
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
  // What follows an unencoded one is taken for a path, and what stands before it for the host and port: an error would name them.
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
  if (!hasDecodableCredentials(parsed))
    throw new LocalError(
      'INVALID_ARGUMENT',
      `the name or password in ${variable} has a "%" that begins no percent-encoding: write it as %25`,
    );
  return { url: parsed, variable };
}

/** One without a scheme is given that of the URL by the library; other programs take it for a proxy that speaks HTTP. */
function withScheme(proxy: string): string {
  const isBare = VARIABLES.some((name) => `https://${process.env[name]}` === proxy);
  return isBare ? proxy.replace(/^https:/, 'http:') : proxy;
}

function hasDecodableCredentials(proxy: URL): boolean {
  try {
    authorization(proxy);
    return true;
  } catch {
    return false;
  }
}

/**
 * A connection through `proxy` to the host and port of `url`, which nobody has proved yet.
 * @param signal ends the attempt; a tunnel that stands is the caller's to close
 * @throws RemoteError CONNECTION_REFUSED when the proxy refuses; what {@link HttpsGet} throws where the proxy cannot be reached
 */
export async function openTunnel({ url: proxy, variable }: HttpProxy, url: URL, signal: AbortSignal): Promise<Duplex> {
  const { request } = proxy.protocol === 'https:' ? await import('node:https') : await import('node:http');
  const target = `${url.hostname}:${url.port || (url.protocol === 'ws:' ? 80 : 443)}`;
  const who = `the proxy ${proxy.host}`;
  const options: RequestOptions & Pick<ConnectionOptions, 'rejectUnauthorized' | 'minVersion'> = {
    method: 'CONNECT',
    host: proxy.hostname.replace(/^\[|\]$/g, ''),
    port: proxy.port,
    path: target,
    headers: { host: target },
    agent: false,
    // The environment cannot switch it off: the proxy is sent a password.
    rejectUnauthorized: true,
    minVersion: 'TLSv1.2',
    signal,
  };
  return new Promise((resolve, reject) => {
    const connecting = request(options);
    // Not one of the options, which NODE_DEBUG prints.
    const credentials = authorization(proxy);
    if (credentials !== null) connecting.setHeader('proxy-authorization', credentials);
    connecting.once('connect', ({ statusCode = 0, headers }, socket, early) => {
      const stands = statusCode >= 200 && statusCode < 300;
      if (stands && early.length === 0) return resolve(socket);
      socket.destroy();
      const login = wantsLogin(statusCode, headers);
      if (stands) return reject(new RemoteError('BAD_RESPONSE', `${who} spoke before ${target} did${login}`));
      const remedy = statusCode === 407 ? wantsCredentials(proxy, variable) : login;
      reject(new RemoteError('CONNECTION_REFUSED', `${who} refused to connect to ${target} (${statusCode})${remedy}`));
    });
    const chain = noteCertificates(connecting);
    connecting.once('error', (error) =>
      reject(httpsProblem(error, { who, by: proxy.protocol === 'https:' ? 'https' : 'HTTP', request: connecting, chain: chain() })),
    );
    connecting.once('close', () => reject(new RemoteError('BAD_RESPONSE', `${who} gave no answer`)));
    connecting.end();
  });
}

function wantsCredentials({ username, password }: URL, variable: string): string {
  if (username === '' && password === '') return ': it asks for a name and a password, as in http://name:password@host:port';
  return `: it does not take the name and password of ${variable}`;
}

/** What a network says to those who have not accepted its terms (RFC 6585 §6), a redirect to its login, or a page in the place of a tunnel. */
function wantsLogin(statusCode: number, headers: IncomingHttpHeaders): string {
  const isRedirect = statusCode >= 300 && statusCode < 400;
  const isLogin = statusCode === 511 || isRedirect || (statusCode < 300 && isPage(headers));
  return isLogin ? ': this network may want a login first, in a browser' : '';
}

/** The body is for a browser. */
export function isPage({ 'content-type': type = '' }: IncomingHttpHeaders): boolean {
  return /html/i.test(type);
}

function authorization({ username, password }: URL): string | null {
  if (username === '' && password === '') return null;
  const [name, secret] = [decodeURIComponent(username), decodeURIComponent(password)];
  return `Basic ${Buffer.from(`${name}:${secret}`).toString('base64')}`;
}
