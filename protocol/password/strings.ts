/** String encodings of CPace, of which none is a prefix of another (draft-irtf-cfrg-cpace-21, §5 and appendix A). */
import { concatBytes } from '@noble/hashes/utils.js';

/** `lv_cat`: each part after its length. The parts may be secret: the result is the only copy made. */
export function lvCat(...parts: readonly Uint8Array[]): Uint8Array {
  return concatBytes(...parts.flatMap((part) => [encodeLength(part.length), part]));
}

/** `generator_string`: padded so that the password-related string alone fills the hash's first block. */
export function generatorString(dsi: Uint8Array, prs: Uint8Array, ci: Uint8Array, sid: Uint8Array, blockLength: number): Uint8Array {
  const begun = [prs, dsi].reduce((length, part) => length + encodeLength(part.length).length + part.length, 0);
  const padding = Math.max(0, blockLength - 1 - begun);
  return lvCat(dsi, prs, new Uint8Array(padding), ci, sid);
}

/** Encodes a length as LEB128. */
function encodeLength(length: number): Uint8Array {
  const bytes: number[] = [];
  let rest = length;
  for (; rest > 0x7f; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) | 0x80);
  return Uint8Array.from([...bytes, rest]);
}
