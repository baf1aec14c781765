/**
 * One GET by https (RFC 9110, RFC 2818): how a device or client without a pin asks for its base station's document. Loaded when the first one asks, so that who
 * has a pin carries no TLS.
 *
 * 1. Where `HTTPS_PROXY` names a proxy and `NO_PROXY` does not except the host, tunnel through it (CONNECT).
 * 2. TLS 1.2 or later. The chain must lead to `rootCerts`, which replace the roots of Node, and the certificate must be valid now, and for the host of the URL.
 *    The environment cannot switch that off.
 * 3. The answer must be 200: a redirect is not followed, since it would lead away from the host that was checked.
 */
import { type Agent, get } from 'node:https';
import { checkServerIdentity } from 'node:tls';
import { LocalError, RemoteError, type SvcError } from '../../protocol/errors/index.ts';
import type { HttpsAnswer, HttpsRequest } from '../environment.ts';

/** @throws as {@link HttpsGet} */
export async function getHttps(request: HttpsRequest): Promise<HttpsAnswer> {
  const { hostname } = new URL(request.url);
  const host = hostname.replace(/^\[|\]$/g, '');
  const timeout = AbortSignal.timeout(request.timeout);
  const signal = request.signal === undefined ? timeout : AbortSignal.any([timeout, request.signal]);
  try {
    signal.throwIfAborted();
    return await fetched(request, host, await agentFor(request.url), signal);
  } catch (error) {
    if (request.signal?.aborted === true) throw new LocalError('STOPPED', 'the request was stopped');
    if (timeout.aborted) throw new RemoteError('TIMEOUT', `${host} did not answer by https within ${request.timeout / 1000} s`);
    throw problemOf(error as NodeJS.ErrnoException, host);
  }
}

/** A proxy's, where one applies; else none: a connection for this request alone. */
async function agentFor(url: string): Promise<Agent | false> {
  const { HTTPS_PROXY, https_proxy } = process.env;
  if (!HTTPS_PROXY && !https_proxy) return false;
  const { getProxyForUrl } = await import('proxy-from-env');
  const proxy = getProxyForUrl(url);
  if (proxy === '') return false;
  if (!/^https?:$/.test(URL.canParse(proxy) ? new URL(proxy).protocol : ''))
    throw new LocalError('INVALID_ARGUMENT', 'HTTPS_PROXY must be http://host:port or https://host:port');
  const { HttpsProxyAgent } = await import('https-proxy-agent');
  return new HttpsProxyAgent(proxy);
}

function fetched({ url, rootCerts, limit }: HttpsRequest, host: string, agent: Agent | false, signal: AbortSignal): Promise<HttpsAnswer> {
  const options = {
    agent,
    signal,
    rejectUnauthorized: true,
    minVersion: 'TLSv1.2',
    // The name of the URL, and not what an agent takes for it.
    checkServerIdentity: (_: string, certificate: Parameters<typeof checkServerIdentity>[1]) => checkServerIdentity(host, certificate),
    headers: { accept: 'application/json' },
    ...(rootCerts !== undefined && { ca: rootCerts }),
  } as const;
  return new Promise((resolve, reject) => {
    const request = get(url, options, (response) => {
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
      response.on('error', reject);
    });
    request.on('error', reject);
  });
}

/** What each fault of a certificate is called by OpenSSL, and by us; the name of the host comes before. */
const CERTIFICATE_FAULTS: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: 'has expired, or this clock is wrong',
  CERT_NOT_YET_VALID: 'is not yet valid, or this clock is wrong',
  ERR_TLS_CERT_ALTNAME_INVALID: 'is for another name',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'is self-signed and not among the roots that are trusted',
  SELF_SIGNED_CERT_IN_CHAIN: 'is from an unknown authority: its root is not among those that are trusted',
  UNABLE_TO_GET_ISSUER_CERT: 'is from an unknown authority, or its chain is incomplete',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'is from an unknown authority, or its chain is incomplete',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'is from an unknown authority, or its chain is incomplete: an intermediate certificate may be missing',
  CERT_REVOKED: 'has been revoked',
  CERT_SIGNATURE_FAILURE: 'has a wrong signature',
  INVALID_CA: 'is from an authority that may not issue certificates',
  INVALID_PURPOSE: 'is not for a server',
};

/** Further names of OpenSSL for a certificate that does not hold. */
const CERTIFICATE_CODE = /^(CERT_|CRL_|UNABLE_TO_|ERROR_IN_CERT_|HOSTNAME_MISMATCH|PATH_LENGTH_EXCEEDED|ERR_SSL_(CA|EE)_)/;

const UNREACHABLE = /^(ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL|ETIMEDOUT|EACCES|EPERM)$/;

function problemOf(error: NodeJS.ErrnoException & { errors?: NodeJS.ErrnoException[] }, host: string): SvcError {
  if (error instanceof RemoteError || error instanceof LocalError) return error;
  // All addresses of a name were tried.
  const code = error.code ?? error.errors?.[0]?.code ?? '';
  const fault = CERTIFICATE_FAULTS[code] ?? (CERTIFICATE_CODE.test(code) ? `does not hold (${code})` : undefined);
  if (fault !== undefined) return new RemoteError('CERTIFICATE_VALIDATION_FAILED', `the certificate of ${host} ${fault}`, { cause: error });
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN')
    return new RemoteError('DNS', `${host} does not resolve to an address: check the name and this host's DNS`, { cause: error });
  if (UNREACHABLE.test(code)) return new RemoteError('CONNECTION_REFUSED', `${host} does not answer by https (${code})`, { cause: error });
  return new RemoteError('BAD_RESPONSE', `${host} does not speak https as it should: ${error.message}`, { cause: error });
}
