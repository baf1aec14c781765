/** What the other end says for people, made fit to be shown. */
import { printable } from '../printable.ts';
import type { CoapResponse } from './response.ts';

const utf8 = new TextDecoder();

/**
 * The diagnostic text of an error (RFC 7252 §5.5.2): UTF-8 without content format. Empty when there is none.
 * @param max bytes that are read of it
 */
export function diagnosticText({ contentFormat, payload }: Pick<CoapResponse, 'contentFormat' | 'payload'>, max: number): string {
  return contentFormat === undefined ? printable(utf8.decode(payload.subarray(0, max))) : '';
}
