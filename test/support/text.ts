/** Any Unicode text for property tests. fast-check's own unit `binary` takes a second to prepare, in each process. */
import fc from 'fast-check';

const SURROGATES = { from: 0xd800, count: 0x800 };

const character = fc
  .nat({ max: 0x10ffff - SURROGATES.count })
  .map((number) => String.fromCodePoint(number < SURROGATES.from ? number : number + SURROGATES.count));

/** Text of at most `maxLength` code points, without lone surrogates. */
export function anyText(maxLength: number): fc.Arbitrary<string> {
  return fc.string({ unit: character, maxLength });
}
