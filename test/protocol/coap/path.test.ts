/** Paths and query arguments: RFC 7252 §5.10.1, §6.4, §6.5 and the examples of appendix B. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { formatPath, parsePath } from '../../../protocol/coap/index.ts';
import { checkQuery } from '../../../protocol/coap/path.ts';
import { LocalError } from '../../../protocol/errors/index.ts';
import { anyText } from '../../support/text.ts';

describe('paths', () => {
  test.each<[string, string[], string?]>([
    ['/', []],
    ['/iam/users', ['iam', 'users']],
    ['/a/', ['a', '']],
    ['//a', ['', 'a']],
    ['/a%2Fb', ['a/b']],
    ['/100%25', ['100%']],
    ['/gr%C3%B6%C3%9Fe', ['größe']],
    ['/größe', ['größe'], '/gr%C3%B6%C3%9Fe'],
    ['/a b', ['a b'], '/a%20b'],
    ["/a:b@c!$&'()*+,;=-._~", ["a:b@c!$&'()*+,;=-._~"]],
    ['/%7Bname%7D', ['{name}']],
    ['/%e6%b0%b4', ['水'], '/%E6%B0%B4'],
  ])('%s has the segments %j', (path, segments, canonical = path) => {
    expect(parsePath(path)).toEqual(segments);
    expect(formatPath(segments)).toBe(canonical);
    expect(parsePath(formatPath(segments))).toEqual(segments);
  });

  test.each([
    '',
    'a',
    'a/b',
    '/%',
    '/%zz',
    '/%ff',
    '/%c3',
    '/a/./b',
    '/..',
    '/%2e%2E',
    `/${'x'.repeat(256)}`,
    `/${'ab/'.repeat(86)}`,
    '/\ud800',
  ])('%o is refused', (path) => {
    expect(() => parsePath(path)).toThrow(LocalError);
  });

  // The paths of the five URIs of the standard, with the Uri-Path options they come from.
  test.each<[string, string[]]>([
    ['/', []],
    ['/.well-known/core', ['.well-known', 'core']],
    ['/%E3%81%93%E3%82%93%E3%81%AB%E3%81%A1%E3%81%AF', ['\u3053\u3093\u306b\u3061\u306f']],
    ['//%2F//', ['', '/', '', '']],
  ])('RFC 7252 appendix B: %s', (path, segments) => {
    expect(parsePath(path)).toEqual(segments);
    expect(formatPath(segments)).toBe(path);
  });

  test('RFC 7252 appendix B: the arguments "//" and "?&" are accepted', () => {
    expect(checkQuery(['//', '?&'])).toEqual(['//', '?&']);
  });

  test('a path has 256 bytes at most', () => {
    expect(parsePath(`/${'x'.repeat(255)}`)).toHaveLength(1);
    expect(parsePath('/a'.repeat(128))).toHaveLength(128);
    expect(() => parsePath('/a'.repeat(129))).toThrow('longer than 256 bytes');
    expect(() => parsePath(`/${'ü'.repeat(128)}`)).toThrow(LocalError);
  });

  test('any segments survive a round trip through a string', () => {
    fc.assert(
      fc.property(fc.array(anyText(30), { minLength: 1, maxLength: 8 }), (segments) => {
        const path = formatPath(segments);
        fc.pre(!segments.some((segment) => segment === '.' || segment === '..') && !(segments.length === 1 && segments[0] === ''));
        fc.pre(new TextEncoder().encode(segments.join('/')).length < 256);
        expect(path).toMatch(/^[!-~]+$/);
        expect(parsePath(path)).toEqual(segments);
      }),
      { numRuns: 100, seed: 1 },
    );
  });

  test('query arguments are text of at most 255 bytes each and 512 together', () => {
    expect(checkQuery(['u=Cel', ''])).toEqual(['u=Cel', '']);
    expect(() => checkQuery(['x'.repeat(256)])).toThrow(LocalError);
    expect(() => checkQuery(['x'.repeat(255), 'x'.repeat(255), 'x'])).toThrow(LocalError);
    expect(() => checkQuery(['\udc00'])).toThrow(LocalError);
  });
});
