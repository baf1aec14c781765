/** What the other end says for people, made fit to be shown. */
import type { CoapResponse } from './response.ts';

const utf8 = new TextDecoder();

/**
 * The diagnostic text of an error (RFC 7252 §5.5.2): UTF-8 without content format. Empty when there is none.
 * @param max bytes that are read of it
 */
export function diagnosticText({ contentFormat, payload }: Pick<CoapResponse, 'contentFormat' | 'payload'>, max: number): string {
  return contentFormat === undefined ? printable(utf8.decode(payload.subarray(0, max))) : '';
}

/**
 * Text of the other end goes to terminals and logs: no control characters, separators of lines, and characters that turn the direction of what follows.
 * Joiners (U+200C, U+200D) belong to letters of some scripts, and what is not assigned yet may be one: they stay.
 */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]+/gu, ' ').trim();
}
