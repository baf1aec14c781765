/**
 * Published vectors of SHA-256 (FIPS 180-2, appendix B.1 and B.2) and HMAC-SHA-256 (RFC 4231 §4.2 to §4.8); all bytes
 * as hexadecimal text.
 */

/** Hash of the concatenation of `parts`. */
interface Sha256Vector {
  readonly name: string;
  readonly parts: readonly string[];
  readonly digest: string;
}

/** HMAC of the concatenation of `parts`; `tag` is truncated as in the source. */
interface HmacVector {
  readonly name: string;
  readonly key: string;
  readonly parts: readonly string[];
  readonly tag: string;
}

const ABC = 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad';

export const sha256Vectors: readonly Sha256Vector[] = [
  { name: 'FIPS 180-2 B.1', parts: [text('abc')], digest: ABC },
  { name: 'FIPS 180-2 B.1 in parts', parts: [text('a'), '', text('bc')], digest: ABC },
  {
    name: 'FIPS 180-2 B.2',
    parts: [text('abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq')],
    digest: '248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1',
  },
  { name: 'SHA-256 of nothing', parts: [], digest: 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855' },
];

export const hmacVectors: readonly HmacVector[] = [
  {
    name: 'RFC 4231 §4.2',
    key: '0b'.repeat(20),
    parts: [text('Hi '), text('There')],
    tag: 'b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7',
  },
  {
    name: 'RFC 4231 §4.3',
    key: text('Jefe'),
    parts: [text('what do ya want for nothing?')],
    tag: '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843',
  },
  {
    name: 'RFC 4231 §4.4',
    key: 'aa'.repeat(20),
    parts: ['dd'.repeat(50)],
    tag: '773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe',
  },
  {
    name: 'RFC 4231 §4.5',
    key: '0102030405060708090a0b0c0d0e0f10111213141516171819',
    parts: ['cd'.repeat(50)],
    tag: '82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b',
  },
  { name: 'RFC 4231 §4.6', key: '0c'.repeat(20), parts: [text('Test With Truncation')], tag: 'a3b6167473100ee06e0c796c2955552b' },
  {
    name: 'RFC 4231 §4.7',
    key: 'aa'.repeat(131),
    parts: [text('Test Using Larger Than Block-Size Key - Hash Key First')],
    tag: '60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54',
  },
  {
    name: 'RFC 4231 §4.8',
    key: 'aa'.repeat(131),
    parts: [
      text(
        'This is a test using a larger than block-size key and a larger than block-size data. The key needs to be hashed before being ' +
          'used by the HMAC algorithm.',
      ),
    ],
    tag: '9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2',
  },
];

function text(value: string): string {
  return Buffer.from(value).toString('hex');
}
