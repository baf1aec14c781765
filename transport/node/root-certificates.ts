/** Root certificates as PEM, where there is X.509 to look into them. */
import { X509Certificate } from 'node:crypto';
import { LocalError } from '../../protocol/errors/index.ts';
import { certificateBlocks, checkCertificates } from '../../protocol/identity/index.ts';

/** The same text. TLS takes what it can read of roots, and says nothing of the rest. @throws LocalError INVALID_ARGUMENT unless each can be read */
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
