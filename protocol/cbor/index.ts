/** CBOR (RFC 8949) for control messages: a plain, checked subset, and typed accessors for its maps. */
export { type CborValue, encode } from './codec.ts';
export * from './fields.ts';
export { MapWriter } from './map-writer.ts';
export { decode } from './reader.ts';
