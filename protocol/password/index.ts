/** Proof of a password over a connection: CPace, its binding, and its messages (PROTOCOL.md §8). */
export * from './cpace.ts';
export * from './exchange.ts';
export * from './group.ts';
export * from './kdf.ts';
export * from './load.ts';
export * from './messages.ts';
export * from './opaque-string.ts';
export * from './strings.ts';
