/**
 * Decides whether a certificate proves a host to a peer that trusts only the roots of Node, as devices do
 * (docs/trust.md).
 */
import { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { rootCertificates } from 'node:tls';
import { certificateBlocks } from '../../protocol/identity/index.ts';

/** Most certificates between that of a host and its root. */
const MAX_CHAIN = 8;

/**
 * @param pem of the host's certificate, and of those between it and the root
 * @param host a name or numeric address
 * @param now Unix ms
 * @param roots PEM of each trusted root
 */
export function provesHost(pem: string, host: string, now: number, roots: readonly string[] = rootCertificates): boolean {
  const [leaf, ...between] = certificateBlocks(pem).map((each) => new X509Certificate(each));
  if (leaf === undefined) return false;
  const isNamed = isIP(host) === 0 ? leaf.checkHost(host) !== undefined : leaf.checkIP(host) !== undefined;
  if (!isNamed) return false;
  let current = leaf;
  for (let length = 0; length <= MAX_CHAIN; length++) {
    if (!isValidAt(current, now)) return false;
    if (hasRoot(current, roots, now)) return true;
    const issuer = between.find((each) => isIssuedBy(current, each) && each.ca && each.fingerprint256 !== current.fingerprint256);
    if (issuer === undefined) return false;
    current = issuer;
  }
  return false;
}

/** Returns whether a root has issued it. */
function hasRoot(certificate: X509Certificate, roots: readonly string[], now: number): boolean {
  return roots.some((pem) => {
    const root = new X509Certificate(pem);
    return isIssuedBy(certificate, root) && isValidAt(root, now);
  });
}

function isIssuedBy(certificate: X509Certificate, issuer: X509Certificate): boolean {
  return certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey);
}

function isValidAt({ validFrom, validTo }: X509Certificate, now: number): boolean {
  return Date.parse(validFrom) <= now && now <= Date.parse(validTo);
}
