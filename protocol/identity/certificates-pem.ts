/**
 * PEM text of root certificates (RFC 7468 §5), validated where a user supplies it. The TLS of the platform judges their
 * contents.
 */
import { base64 } from '@scure/base';
import { LocalError } from '../errors/index.ts';
import { orElse } from '../or-else.ts';

const BLOCK = /-----BEGIN CERTIFICATE-----([^-]*)-----END CERTIFICATE-----/g;
const SEQUENCE = 0x30;

/** Maximum length in characters: some hundred certificates, more than any platform trusts. */
export const MAX_CERTIFICATES = 1 << 20;

/**
 * Returns the CERTIFICATE blocks of a text, each as separate PEM in the strict form (RFC 7468 §3): OpenSSL does not
 * accept indented text.
 */
export function certificateBlocks(pem: string): string[] {
  return [...pem.matchAll(BLOCK)].map(([, text = '']) => {
    const lines = text.replace(/\s/g, '').match(/.{1,64}/g) ?? [];
    return ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----'].join('\n');
  });
}

/**
 * Returns the same text.
 * @throws LocalError INVALID_ARGUMENT unless it has at least one certificate, and all are whole
 */
export function checkCertificates(pem: string): string {
  if (typeof pem !== 'string' || pem.length > MAX_CERTIFICATES)
    throw invalid(`they are not text, or longer than ${MAX_CERTIFICATES} characters`);
  const blocks = [...pem.matchAll(BLOCK)];
  if (pem.includes('PRIVATE KEY-----')) throw invalid('there is a private key among them: give only the certificates');
  if (blocks.length === 0) throw invalid('they contain no CERTIFICATE block of PEM');
  if (blocks.length !== pem.split('-----BEGIN').length - 1) throw invalid('they contain something other than whole certificates');
  for (const [, text = ''] of blocks) if (!isCertificate(text)) throw invalid('a certificate is damaged');
  return pem;
}

/** Returns whether `checkCertificates` accepts the text. */
export function areCertificates(pem: string): boolean {
  return orElse(() => checkCertificates(pem), null) !== null;
}

/** Returns whether the text is one DER SEQUENCE that begins with another one, with nothing after it (RFC 5280 §4.1). */
function isCertificate(text: string): boolean {
  const der = orElse(() => base64.decode(text.replace(/[\r\n\t ]/g, '')), new Uint8Array());
  // The length field of a certificate takes two bytes: a certificate has 256 to 65,535.
  const isLong = der[0] === SEQUENCE && der[1] === 0x82 && der[4] === SEQUENCE;
  return isLong && ((der[2] ?? 0) << 8) + (der[3] ?? 0) === der.length - 4;
}

function invalid(problem: string): LocalError {
  return new LocalError('INVALID_ARGUMENT', `the root certificates cannot be read: ${problem}`);
}
