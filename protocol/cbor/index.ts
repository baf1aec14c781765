/** CBOR (RFC 8949) for control messages: a plain, checked subset, and typed accessors for its maps. */
export { type CborValue, decode, encode } from './codec.ts';
export * from './fields.ts';
export { MapWriter } from './map-writer.ts';
export type { CborLimits } from './reader.ts';
