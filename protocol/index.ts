/** Public surface of the protocol layer: the control plane, without sockets, timers and randomness of its own. */

export * as cbor from './cbor/index.ts';
export * from './coap/index.ts';
export * as control from './control/index.ts';
export * from './errors/index.ts';
export * as records from './records/index.ts';
