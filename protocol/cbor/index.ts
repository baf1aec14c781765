/** CBOR (RFC 8949) for control messages: a plain, checked subset, and typed readers for its maps. */
export { type CborValue, decode, encode } from './codec.ts';
export * from './fields.ts';
export type { CborLimits } from './well-formed.ts';
