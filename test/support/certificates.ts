/**
 * Certificates for tests with real TLS, created on demand: roots, intermediates and servers with any name and validity.
 */
import 'reflect-metadata';
import { webcrypto } from 'node:crypto';
import * as x509 from '@peculiar/x509';

const DAY = 86_400_000;
const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
const provider = webcrypto as unknown as Crypto;

/** Signs other certificates. */
export interface Authority {
  readonly certificate: x509.X509Certificate;
  readonly keys: CryptoKeyPair;
  /** PEM of the certificate. */
  readonly pem: string;
}

/** Options of a TLS server. */
export interface ServerPair {
  readonly cert: string;
  readonly key: string;
}

export interface ServerCertificate {
  /** DNS names and addresses; default `localhost` and 127.0.0.1. */
  names?: readonly string[];
  /** Days from now. */
  from?: number;
  until?: number;
  /** Certificates between its own and the root; the server sends them, too. */
  chain?: readonly Authority[];
}

let serial = 1;

/** A root, or an authority signed by `issuer`. @param until days from now */
export async function authority(name: string, issuer?: Authority, until = 3650): Promise<Authority> {
  const keys = await generateKeys();
  const extensions = [
    new x509.BasicConstraintsExtension(true, undefined, true),
    new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
  ];
  const certificate = await sign(`CN=${name}`, keys, issuer, extensions, -30, until);
  return { certificate, keys, pem: certificate.toString('pem') };
}

/** A server's certificate and key; without an issuer it is self-signed. */
export async function serverPair(issuer: Authority | undefined, options: ServerCertificate = {}): Promise<ServerPair> {
  const { names = ['localhost', '127.0.0.1'], from = -1, until = 30, chain = [] } = options;
  const keys = await generateKeys();
  const alternatives = names.map((value) => ({ type: /^[\d.]+$/.test(value) ? ('ip' as const) : ('dns' as const), value }));
  const extensions = [new x509.SubjectAlternativeNameExtension(alternatives)];
  const certificate = await sign(`CN=${names[0]}`, keys, issuer, extensions, from, until);
  const key = Buffer.from(await provider.subtle.exportKey('pkcs8', keys.privateKey)).toString('base64');
  return {
    cert: [certificate.toString('pem'), ...chain.map(({ pem }) => pem)].join('\n'),
    key: `-----BEGIN PRIVATE KEY-----\n${key}\n-----END PRIVATE KEY-----\n`,
  };
}

async function generateKeys(): Promise<CryptoKeyPair> {
  return (await provider.subtle.generateKey(ALGORITHM, true, ['sign', 'verify'])) as CryptoKeyPair;
}

function sign(
  subject: string,
  keys: CryptoKeyPair,
  issuer: Authority | undefined,
  extensions: x509.Extension[],
  from: number,
  until: number,
): Promise<x509.X509Certificate> {
  const now = Date.now();
  return x509.X509CertificateGenerator.create(
    {
      serialNumber: (serial++).toString(16).padStart(2, '0'),
      subject,
      issuer: issuer?.certificate.subject ?? subject,
      notBefore: new Date(now + from * DAY),
      notAfter: new Date(now + until * DAY),
      signingAlgorithm: ALGORITHM,
      publicKey: keys.publicKey,
      signingKey: issuer?.keys.privateKey ?? keys.privateKey,
      extensions,
    },
    provider,
  );
}
