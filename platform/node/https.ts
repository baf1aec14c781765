/**
 * One GET over https (RFC 9110, RFC 2818): how a device or client without a pin fetches its base station's document.
 * Loaded on first use, so that a device or client with a pin carries no TLS.
 *
 * 1. If a proxy applies, tunnel through it (`https-tunnel.ts`).
 * 2. TLS 1.2 or later. The chain must lead to `rootCerts`, which replace the roots of Node, and the certificate must be
 *    valid now, and for the host of the URL. The environment cannot disable that.
 * 3. The answer must be 200: a redirect is not followed, since it would lead away from the authenticated host.
 */
import { get } from 'node:https';
import type { Duplex } from 'node:stream';
import { checkServerIdentity, type PeerCertificate } from 'node:tls';
import { LocalError, RemoteError } from '../../protocol/errors/index.ts';
import { certificateBlocks } from '../../protocol/identity/index.ts';
import type { HttpsAnswer, HttpsRequest } from '../environment.ts';
import { httpsProblem, noteCertificates } from './https-problem.ts';
import { type Attempt, openTunnel, proxyFor } from './https-tunnel.ts';
import { NotedLookup } from './noted-lookup.ts';
import { checkRootCertificates } from './root-certificates.ts';

/** @throws as {@link HttpsGet} */
export async function getHttps(request: HttpsRequest): Promise<HttpsAnswer> {
  if (request.rootCerts !== undefined) checkRootCertificates(request.rootCerts);
  const timeout = AbortSignal.timeout(request.timeout);
  const signal = request.signal === undefined ? timeout : AbortSignal.any([timeout, request.signal]);
  const url = new URL(request.url);
  const proxy = await proxyFor(request.url);
  const names = new NotedLookup();
  try {
    signal.throwIfAborted();
    return await fetched(request, url, proxy === null ? null : await openTunnel(proxy, url, { signal, names }), { signal, names });
  } catch (error) {
    if (request.signal?.aborted === true) throw new LocalError('STOPPED', 'the request was stopped');
    if (timeout.aborted) names.refuseSilent();
    const way = proxy === null ? '' : ` through the proxy ${proxy.url.host}`;
    if (timeout.aborted) throw new RemoteError('TIMEOUT', `${url.host} did not answer by https${way} within ${request.timeout / 1000} s`);
    throw error;
  }
}

/** @param tunnel to the host; null: a connection of this request's own */
function fetched(
  { rootCerts, limit, fresh }: HttpsRequest,
  url: URL,
  tunnel: Duplex | null,
  { signal, names }: Attempt,
): Promise<HttpsAnswer> {
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const options = {
    agent: false,
    signal,
    lookup: names.lookup,
    rejectUnauthorized: true,
    minVersion: 'TLSv1.2',
    checkServerIdentity: (_: string, certificate: PeerCertificate) => checkServerIdentity(host, certificate),
    headers: { accept: 'application/json', ...(fresh === true && { 'cache-control': 'no-cache' }) },
    ...(rootCerts !== undefined && { ca: certificateBlocks(rootCerts) }),
    ...(tunnel !== null && { socket: tunnel }),
  } as const;
  return new Promise((resolve, reject) => {
    let answered = false;
    const request = get(url, options, (response) => {
      answered = true;
      const { statusCode: status = 0 } = response;
      const chunks: Buffer[] = [];
      let length = 0;
      const fail = (problem: string): void => {
        reject(new RemoteError('BAD_RESPONSE', `${host} ${problem}`));
        request.destroy();
      };
      if (status !== 200)
        return fail(`answered ${status} by https, not 200${status >= 300 && status < 400 ? ': redirects are not followed' : ''}`);
      response.on('data', (chunk: Buffer) => {
        length += chunk.length;
        if (length > limit) fail(`sent more than ${limit} bytes by https`);
        else chunks.push(chunk);
      });
      response.on('end', () => resolve({ status, body: Buffer.concat(chunks) }));
      response.on('error', (error) => reject(httpsProblem(error, { peer: host, request, chain: null })));
    });
    const chain = noteCertificates(request);
    request.on('error', (error) => reject(httpsProblem(error, { peer: host, request, chain: chain() })));
    // Node closes without an error if 101 switches away from HTTP. An answer that arrived is reported by its own
    // events, even after this one.
    request.on('close', () => answered || reject(new RemoteError('BAD_RESPONSE', `${host} gave no answer by https`)));
  });
}
