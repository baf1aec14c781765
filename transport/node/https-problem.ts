/** Why a request by https came to nothing, as one sentence for the person who can mend it. */
import type { ClientRequest } from 'node:http';
import type { DetailedPeerCertificate, TLSSocket } from 'node:tls';
import { LocalError, RemoteError, type SvcError } from '../../protocol/errors/index.ts';

/** What is known of a request that failed. */
export interface FailedRequest {
  /** Whom it was for: a host, or `the proxy …`. */
  readonly who: string;
  /** What it was to speak; default https. */
  readonly by?: string;
  readonly request: ClientRequest;
  /** What the other side showed; null when TLS did not come that far. */
  readonly chain: DetailedPeerCertificate | null;
}

/** The certificates that the other side of a request shows, noted before they are checked: a socket that failed has none any more. */
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

/** An error of Node in the terms of {@link HttpsGet}. */
export function httpsProblem(error: unknown, { who, by = 'https', request, chain }: FailedRequest): SvcError {
  if (error instanceof RemoteError || error instanceof LocalError) return error;
  const { code: own, message, errors } = error as NodeJS.ErrnoException & { errors?: NodeJS.ErrnoException[] };
  // All addresses of a name were tried.
  const code = own ?? errors?.[0]?.code ?? '';
  const cause = { cause: error };
  if ((request.socket as TLSSocket | null)?.authorizationError)
    return new RemoteError(
      'CERTIFICATE_VALIDATION_FAILED',
      `the certificate of ${who} ${certificateFault(code, chain, Date.now())}`,
      cause,
    );
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN')
    return new RemoteError('DNS', `${who} does not resolve to an address: check the name and this host's DNS`, cause);
  if (code === 'ETIMEDOUT') return new RemoteError('TIMEOUT', `${who} did not answer by ${by} in time`, cause);
  if (UNREACHABLE.includes(code)) return new RemoteError('CONNECTION_REFUSED', `${who} does not answer by ${by} (${code})`, cause);
  const tls = tlsFault(error);
  if (tls !== undefined) return new RemoteError('BAD_RESPONSE', `${who} does not speak TLS as it should: ${tls}`, cause);
  return new RemoteError('BAD_RESPONSE', `${who} does not speak ${by} as it should: ${message}`, cause);
}

/** OpenSSL's reason, without its error numbers, files and lines. */
function tlsFault(error: unknown): string | undefined {
  const { reason, message } = error as Error & { reason?: string };
  const said = reason ?? /:SSL routines:[^:]*:([^:]+):/.exec(message)?.[1];
  return said === 'wrong version number' ? 'what it sent is not TLS' : said;
}

/** Names of a certificate that are told. */
const NAMES_SHOWN = 5;
const MAX_NAMES_LENGTH = 200;

function namesOf(certificate: DetailedPeerCertificate | undefined): string {
  const names = (certificate?.subjectaltname ?? certificate?.subject?.CN ?? 'none').toString().split(', ');
  const shown = names.slice(0, NAMES_SHOWN).join(', ').slice(0, MAX_NAMES_LENGTH);
  return names.length > NAMES_SHOWN ? `${shown} and ${names.length - NAMES_SHOWN} more` : shown;
}

const UNKNOWN = 'is from an unknown authority';
const INCOMPLETE = `${UNKNOWN}, or its chain is incomplete: an intermediate certificate may be missing`;

/** Faults by OpenSSL's names for them; those with a date and the wrong name are told by {@link certificateFault}. */
const FAULTS: Readonly<Record<string, string>> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: 'is self-signed and not among the roots that are trusted',
  SELF_SIGNED_CERT_IN_CHAIN: `${UNKNOWN}: its root is not among those that are trusted`,
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
      return FAULTS[code] ?? `does not hold (${code})`;
  }
}

/** From the leaf to the root, which names itself as its issuer. */
function upwards(leaf: DetailedPeerCertificate | null): DetailedPeerCertificate[] {
  const chain: DetailedPeerCertificate[] = [];
  for (let each: DetailedPeerCertificate | null = leaf; each?.valid_to !== undefined && !chain.includes(each); ) {
    chain.push(each);
    each = each.issuerCertificate ?? null;
  }
  return chain;
}

/** Where it is not the certificate itself whose dates are wrong. */
function signerOf(chain: readonly DetailedPeerCertificate[], one: DetailedPeerCertificate | undefined): string {
  return one === undefined || one === chain[0] ? '' : 'is signed by one that ';
}

/** ` (2026-01-01)`, empty when the date is not known. */
function dated(date: string | undefined): string {
  return date === undefined ? '' : ` (${day(Date.parse(date))})`;
}

function day(time: number): string {
  return new Date(time).toISOString().slice(0, 10);
}
