/**
 * Text of the other end goes to terminals and logs, where some characters do more than stand there: control characters, separators of lines, characters that
 * turn the direction of what follows, and formatting characters that nobody sees. Joiners (U+200C, U+200D) belong to letters of some scripts, and what is
 * not assigned yet may be one: they stay.
 */
const UNPRINTABLE = /[\p{Cc}\p{Zl}\p{Zp}\p{Cf}]/gu;
const JOINERS = '\u200c\u200d';

/** Blanks in place of what is not printable, at the ends none. */
export function printable(text: string): string {
  return blanked(text).trim();
}

/** The same without cutting the ends. @param kept characters that stay all the same */
export function blanked(text: string, kept = ''): string {
  return text.replace(UNPRINTABLE, (character) => (stays(character, kept) ? character : ' '));
}

/** Escapes as in JSON (`\u202e`) in place of what is not printable. @param kept characters that stay all the same */
export function escaped(text: string, kept = ''): string {
  return text.replace(UNPRINTABLE, (character) => (stays(character, kept) ? character : escapeOf(character)));
}

function stays(character: string, kept: string): boolean {
  return JOINERS.includes(character) || kept.includes(character);
}

/** Of each UTF-16 unit. */
function escapeOf(character: string): string {
  return Array.from({ length: character.length }, (_, index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`).join('');
}
