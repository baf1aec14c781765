/** Public surface of the protocol layer: the control plane, without its own sockets, timers and randomness. */
export * as cbor from './cbor/index.ts';
export * from './coap/index.ts';
export * from './connection/index.ts';
export * as control from './control/index.ts';
export type * from './crypto-provider.ts';
export * from './endpoint/index.ts';
export * from './errors/index.ts';
export * from './identity/index.ts';
export * as noise from './noise/index.ts';
export * as packet from './packet/index.ts';
export * as password from './password/index.ts';
export type * from './path.ts';
export * as records from './records/index.ts';
