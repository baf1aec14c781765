/** The form in which passwords are compared; the examples of RFC 8265, tables 3 and 4, have their numbers there. */
import { describe, expect, it } from 'vitest';
import { passwordBytes } from '../../../protocol/password/kdf.ts';
import { decodePasswordRequest, encodePasswordRequest } from '../../../protocol/password/messages.ts';
import { opaqueString } from '../../../protocol/password/opaque-string.ts';
import { thrownCode } from '../../support/code-of.ts';

const form = (text: string) => opaqueString('the password', text);

describe('a password keeps', () => {
  it.each([
    ['ASCII and its spaces (12)', 'correct horse battery staple'],
    ['its case (13)', 'Correct Horse Battery Staple'],
    ['letters of other scripts (14)', '\u03c0\u00df\u00e5'],
    ['symbols (15)', 'Jack of \u2666s'],
    ['full-width letters, unlike NFKC', '\uff21bc'],
    ['ligatures, unlike NFKC', '\ufb01sh'],
    ['emoji with joiners', '\u{1f469}\u200d\u{1f4bb}\u2764\ufe0f'],
    ['spaces at both ends', ' a  b '],
  ])('%s', (_, text) => {
    expect(form(text)).toBe(text);
  });
});

describe('are the same password:', () => {
  it.each([
    ['an ogham space and a space (16)', 'foo\u1680bar', 'foo bar'],
    ['a no-break and an ideographic space', 'a\u00a0b\u3000c', 'a b c'],
    ['a letter and one with a combining mark', 'Zoe\u0308', 'Zo\u00eb'],
    ['Hangul and its Jamo', '\u1112\u1161\u11ab', '\ud55c'],
    ['marks in another order', 'q\u0307\u0323', 'q\u0323\u0307'],
    ['an Angstrom sign and the letter', '\u212b', '\u00c5'],
  ])('%s', (_, one, other) => {
    expect(form(one)).toBe(other);
    expect(passwordBytes(one)).toEqual(passwordBytes(other));
  });
});

it.each([
  ['nothing (17)', ''],
  ['a tab (18)', 'my cat is a \tby'],
  ['a line break', 'secret\n'],
  ['DEL', 'a\u007f'],
  ['a C1 control', 'a\u0085b'],
  ['half a character', 'a\ud83d'],
])('%s is no password', (_, text) => {
  expect(thrownCode(() => passwordBytes(text))).toBe('INVALID_ARGUMENT');
});

it('the limit of bytes counts after it: 1,024 of composed letters', () => {
  expect(passwordBytes('e\u0308'.repeat(512))).toHaveLength(1_024);
  expect(thrownCode(() => passwordBytes('e\u0308'.repeat(513)))).toBe('INVALID_ARGUMENT');
});

it('a user name of a login that is not in this form is refused by the device', () => {
  for (const username of ['', 'Zo\u00eb']) expect(decodePasswordRequest(encodePasswordRequest({ username }))).toEqual({ username });
  for (const username of ['Zoe\u0308', 'a\u00a0b', 'a\tb'])
    expect(thrownCode(() => decodePasswordRequest(encodePasswordRequest({ username })))).toBe('PARSE');
});
