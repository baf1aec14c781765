/** Checks root certificates as PEM, where X.509 is available. */
import { X509Certificate } from 'node:crypto';
import { LocalError } from '../../protocol/errors/index.ts';
import { certificateBlocks, checkCertificates } from '../../protocol/identity/index.ts';

/**
 * Returns the same text. TLS uses the roots that it can read and ignores the rest silently. @throws LocalError
 * INVALID_ARGUMENT unless each can be read
 */
export function checkRootCertificates(pem: string): string {
  for (const [index, block] of certificateBlocks(checkCertificates(pem)).entries()) {
    try {
      new X509Certificate(block);
    } catch (error) {
      throw new LocalError('INVALID_ARGUMENT', `root certificate ${index + 1} is damaged`, { cause: error });
    }
  }
  return pem;
}
