/** The handshake: Noise Protocol Framework rev. 34 over pattern tables (PROTOCOL.md §3). */
export type { Aead } from './cipher-state.ts';
export { type HandshakeOptions, HandshakeState, type TrafficKeys } from './handshake-state.ts';
export { type Pattern, type Token, XX } from './patterns.ts';
