/** Explains in one sentence why an https request failed and how to fix it. */
import type { ClientRequest } from 'node:http';
import type { DetailedPeerCertificate, TLSSocket } from 'node:tls';
import { LocalError, RemoteError, type SvcError } from '../../protocol/errors/index.ts';

/** Facts about a failed request. */
export interface FailedRequest {
  /** The target: a host, or `the proxy …`. */
  readonly peer: string;
  /** The expected protocol; default https. */
  readonly by?: string;
  readonly request: ClientRequest;
  /** Certificates that the other side presented; null when TLS did not get that far. */
  readonly chain: DetailedPeerCertificate | null;
}

/** Notes the certificates that the other side presents, before they are checked: a failed socket no longer has them. */
export function noteCertificates(request: ClientRequest): () => DetailedPeerCertificate | null {
  let shown: DetailedPeerCertificate | null = null;
  request.once('socket', (socket) => {
    socket.prependOnceListener('secure', () => {
      shown = (socket as TLSSocket).getPeerCertificate(true);
    });
  });
  return () => shown;
}

const UNREACHABLE: readonly string[] = ['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'EADDRNOTAVAIL', 'EACCES', 'EPERM'];

/** Translates an error of Node to the errors of {@link HttpsGet}. */
export function httpsProblem(error: unknown, { peer, by = 'https', request, chain }: FailedRequest): SvcError {
  if (error instanceof RemoteError || error instanceof LocalError) return error;
  const { code: own, message, errors } = error as NodeJS.ErrnoException & { errors?: NodeJS.ErrnoException[] };
  // All addresses of a name failed.
  const code = own ?? errors?.[0]?.code ?? '';
  const cause = { cause: error };
  if ((request.socket as TLSSocket | null)?.authorizationError)
    return new RemoteError(
      'CERTIFICATE_VALIDATION_FAILED',
      `the certificate of ${peer} ${certificateFault(code, chain, Date.now())}`,
      cause,
    );
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN')
    return new RemoteError('DNS', `${peer} does not resolve to an address: check the name and this host's DNS`, cause);
  if (code === 'ETIMEDOUT') return new RemoteError('TIMEOUT', `${peer} did not answer by ${by} in time`, cause);
  if (UNREACHABLE.includes(code)) return new RemoteError('CONNECTION_REFUSED', `${peer} does not answer by ${by} (${code})`, cause);
  const tls = tlsFault(error);
  if (tls !== undefined) return new RemoteError('BAD_RESPONSE', `${peer} does not speak TLS correctly: ${tls}`, cause);
  return new RemoteError('BAD_RESPONSE', `${peer} does not speak ${by} correctly: ${message}`, cause);
}

/** Returns OpenSSL's reason, without its error numbers, files and lines. */
function tlsFault(error: unknown): string | undefined {
  const { reason, message } = error as Error & { reason?: string };
  const said = reason ?? /:SSL routines:[^:]*:([^:]+):/.exec(message)?.[1];
  return said === 'wrong version number' ? 'what it sent is not TLS' : said;
}

/** Most names of a certificate to show. */
const NAMES_SHOWN = 5;
const MAX_NAMES_LENGTH = 200;

function namesOf(certificate: DetailedPeerCertificate | undefined): string {
  const names = (certificate?.subjectaltname ?? certificate?.subject?.CN ?? 'none').toString().split(', ');
  const shown = names.slice(0, NAMES_SHOWN).join(', ').slice(0, MAX_NAMES_LENGTH);
  return names.length > NAMES_SHOWN ? `${shown} and ${names.length - NAMES_SHOWN} more` : shown;
}

const UNKNOWN = 'is from an unknown authority';
const INCOMPLETE = `${UNKNOWN}, or its chain is incomplete: an intermediate certificate may be missing`;

/** Faults by OpenSSL's names; {@link certificateFault} describes those with a date and the wrong name. */
const FAULTS: Readonly<Record<string, string>> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: 'is self-signed and not a trusted root',
  SELF_SIGNED_CERT_IN_CHAIN: `${UNKNOWN}: its root is not trusted`,
  UNABLE_TO_GET_ISSUER_CERT: INCOMPLETE,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: INCOMPLETE,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: INCOMPLETE,
  CERT_REVOKED: 'has been revoked',
  CERT_SIGNATURE_FAILURE: 'has a wrong signature',
  INVALID_CA: 'is from an authority that may not issue certificates',
  INVALID_PURPOSE: 'is not for a server',
};

/** @param now Unix ms */
function certificateFault(code: string, chain: DetailedPeerCertificate | null, now: number): string {
  const certificates = upwards(chain);
  const clock = `, or this host's clock is wrong: it says ${day(now)}`;
  switch (code) {
    case 'CERT_HAS_EXPIRED': {
      const expired = certificates.find(({ valid_to: until }) => Date.parse(until) < now);
      return `${signerOf(certificates, expired)}has expired${dated(expired?.valid_to)}${clock}`;
    }
    case 'CERT_NOT_YET_VALID': {
      const early = certificates.find(({ valid_from: from }) => Date.parse(from) > now);
      return `${signerOf(certificates, early)}is not yet valid${dated(early?.valid_from)}${clock}`;
    }
    case 'ERR_TLS_CERT_ALTNAME_INVALID':
      return `is for another name (${namesOf(certificates[0])})`;
    default:
      return FAULTS[code] ?? `is not valid (${code})`;
  }
}

/** From the leaf to the root, whose issuer is itself. */
function upwards(leaf: DetailedPeerCertificate | null): DetailedPeerCertificate[] {
  const chain: DetailedPeerCertificate[] = [];
  for (let each: DetailedPeerCertificate | null = leaf; each?.valid_to !== undefined && !chain.includes(each); ) {
    chain.push(each);
    each = each.issuerCertificate ?? null;
  }
  return chain;
}

/** Prefix for a fault whose dates belong to an issuer, not to the certificate itself. */
function signerOf(chain: readonly DetailedPeerCertificate[], one: DetailedPeerCertificate | undefined): string {
  return one === undefined || one === chain[0] ? '' : 'is signed by one that ';
}

/** ` (2026-01-01)`, empty when the date is unknown. */
function dated(date: string | undefined): string {
  return date === undefined ? '' : ` (${day(Date.parse(date))})`;
}

function day(time: number): string {
  return new Date(time).toISOString().slice(0, 10);
}
