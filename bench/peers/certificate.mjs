/** A self-signed X.509 certificate (RFC 5280) for a fresh P-256 key, with the minimum that a TLS server needs. */
import { generateKeyPairSync, randomBytes, sign } from 'node:crypto';

const INTEGER = 0x02;
const BIT_STRING = 0x03;
const UTF8 = 0x0c;
const UTC_TIME = 0x17;
const SEQUENCE = 0x30;
const SET = 0x31;
const EXPLICIT_0 = 0xa0;
const COMMON_NAME = Buffer.from('0603550403', 'hex');
const ECDSA_WITH_SHA256 = Buffer.from('06082a8648ce3d040302', 'hex');

/** Returns PEM texts for `createServer` of `node:tls`. */
export function selfSigned() {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const algorithm = der(SEQUENCE, ECDSA_WITH_SHA256);
  const name = der(SEQUENCE, der(SET, der(SEQUENCE, COMMON_NAME, der(UTF8, Buffer.from('bench')))));
  const validity = der(SEQUENCE, der(UTC_TIME, Buffer.from('200101000000Z')), der(UTC_TIME, Buffer.from('491231235959Z')));
  const version = der(EXPLICIT_0, der(INTEGER, Buffer.from([2])));
  const serial = der(INTEGER, Buffer.concat([Buffer.from([1]), randomBytes(8)]));
  const key = publicKey.export({ type: 'spki', format: 'der' });
  const body = der(SEQUENCE, version, serial, algorithm, name, validity, name, key);
  const signature = der(BIT_STRING, Buffer.from([0]), sign('sha256', body, privateKey));
  return {
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }),
    cert: pem(der(SEQUENCE, body, algorithm, signature)),
  };
}

function der(tag, ...parts) {
  const body = Buffer.concat(parts);
  const length = body.length < 0x80 ? [body.length] : [0x82, body.length >> 8, body.length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...length]), body]);
}

function pem(bytes) {
  return `-----BEGIN CERTIFICATE-----\n${bytes.toString('base64').replace(/.{64}/g, '$&\n')}\n-----END CERTIFICATE-----\n`;
}
