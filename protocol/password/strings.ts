/** Strings of CPace that no other string begins with (draft-irtf-cfrg-cpace-21, §5 and appendix A). */

/** `data` after its length as LEB128. */
export function prependLength(data: Uint8Array): Uint8Array {
  const head: number[] = [];
  let length = data.length;
  for (; length > 0x7f; length = Math.floor(length / 0x80)) head.push((length % 0x80) | 0x80);
  return concatenate(Uint8Array.from([...head, length]), data);
}

/** Each part after its length. */
export function lvCat(...parts: readonly Uint8Array[]): Uint8Array {
  return concatenate(...parts.map(prependLength));
}

/** `generator_string`: the password-related string alone fills the hash's first block, whatever follows it. */
export function generatorString(dsi: Uint8Array, prs: Uint8Array, ci: Uint8Array, sid: Uint8Array, blockLength: number): Uint8Array {
  const padding = Math.max(0, blockLength - 1 - prependLength(prs).length - prependLength(dsi).length);
  return lvCat(dsi, prs, new Uint8Array(padding), ci, sid);
}

/** The parts one after the other. */
export function concatenate(...parts: readonly Uint8Array[]): Uint8Array {
  const all = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}
