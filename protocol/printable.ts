/**
 * Text from a peer reaches terminals and logs, where some characters have side effects: control characters, line
 * separators, characters that change the text direction, and invisible formatting characters. Joiners (U+200C, U+200D)
 * are part of some scripts, and unassigned code points may be: both stay.
 */
const UNPRINTABLE = /[\p{Cc}\p{Zl}\p{Zp}\p{Cf}]/gu;
const JOINERS = '\u200c\u200d';

/** Returns the text with spaces in place of unprintable characters, trimmed at both ends. */
export function printable(text: string): string {
  return blanked(text).trim();
}

/** As {@link printable}, without trimming. @param kept characters that stay nevertheless */
export function blanked(text: string, kept = ''): string {
  return text.replace(UNPRINTABLE, (character) => (stays(character, kept) ? character : ' '));
}

/**
 * Returns the text with escapes as in JSON (`\u202e`) in place of unprintable characters.
 * @param kept characters that stay nevertheless
 */
export function escaped(text: string, kept = ''): string {
  return text.replace(UNPRINTABLE, (character) => (stays(character, kept) ? character : escapeOf(character)));
}

function stays(character: string, kept: string): boolean {
  return JOINERS.includes(character) || kept.includes(character);
}

/** Returns an escape for each UTF-16 unit. */
function escapeOf(character: string): string {
  return Array.from({ length: character.length }, (_, index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`).join('');
}
