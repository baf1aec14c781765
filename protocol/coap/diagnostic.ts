/** Diagnostic texts of the peer, made safe to display. */
import { printable } from '../printable.ts';
import type { CoapResponse } from './response.ts';

const utf8 = new TextDecoder();

/**
 * Returns the diagnostic text of an error (RFC 7252 §5.5.2): UTF-8 without content format. Empty when there is none.
 * @param max bytes of it that are used
 */
export function diagnosticText({ contentFormat, payload }: Pick<CoapResponse, 'contentFormat' | 'payload'>, max: number): string {
  return contentFormat === undefined ? printable(utf8.decode(payload.subarray(0, max))) : '';
}
