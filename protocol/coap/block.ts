/**
 * The value of Block1 and Block2 (RFC 7959 §2.2): block number, more flag and size exponent. Exponent 7 is BERT (RFC
 * 8323 §6): its numbers count units of 1,024 bytes, and its messages carry any multiple of that.
 */

/** The value of Block1 or Block2 in a message. */
export interface Block {
  /** Below 2^20. */
  readonly number: number;
  readonly more: boolean;
  /** 0 to 7; a block has 2^(exponent + 4) bytes, or with 7 a multiple of 1,024. */
  readonly exponent: number;
}

/** Size exponent of BERT. */
export const BERT = 7;

/** Returns the bytes that one step of the block number stands for. */
export function blockUnit(exponent: number): number {
  return exponent === BERT ? 1024 : 1 << (exponent + 4);
}

/** Returns the offset of the block in the body, in bytes. */
export function blockOffset(block: Block): number {
  return block.number * blockUnit(block.exponent);
}

/**
 * Returns whether a payload of this length is valid in this block: full blocks before the last, at least one byte
 * except for an empty body.
 */
export function isBlockLength(block: Block, length: number): boolean {
  const unit = blockUnit(block.exponent);
  if (block.more) return block.exponent === BERT ? length > 0 && length % unit === 0 : length === unit;
  return block.exponent === BERT || length <= unit;
}

/** Returns the option value as an unsigned integer. */
export function blockValue(block: Block): number {
  return block.number * 16 + (block.more ? 8 : 0) + block.exponent;
}

/** Decodes an option value of at most 3 bytes. */
export function readBlock(value: number): Block {
  return { number: Math.floor(value / 16), more: (value & 8) !== 0, exponent: value & 7 };
}
