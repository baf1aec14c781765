/**
 * Signs requests to a service so that it can verify its base station: the headers of Standard Webhooks, `webhook-id`,
 * `webhook-timestamp` (Unix seconds) and `webhook-signature: v1,<base64 of HMAC-SHA-256 over "id.timestamp.body">`.
 */
import { createHmac } from 'node:crypto';
import type { RandomBytes } from '../storage/secrets.ts';

const PREFIX = 'whsec_';
const SECRET_LENGTH = 32;

/** Returns a new signing secret: `whsec_` and 256 random bits in base64. The decoded bytes are the HMAC key. */
export function newServiceSecret(randomBytes: RandomBytes): string {
  return PREFIX + Buffer.from(randomBytes(SECRET_LENGTH)).toString('base64');
}

/** Returns the three headers of a request. @param timestamp Unix seconds */
export function signatureHeaders(secret: string, { id, timestamp, body }: { id: string; timestamp: number; body: string }) {
  const key = Buffer.from(secret.slice(PREFIX.length), 'base64');
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`, 'utf8').digest('base64');
  return { 'webhook-id': id, 'webhook-timestamp': String(timestamp), 'webhook-signature': `v1,${signature}` };
}
