/**
 * Exports of the core. Every name here is part of the ABI that `bindings/` calls.
 *
 * The caller sets the size of the memory once; `bindings/` grows it before any view exists, and never again. Inside are
 * (memory/layout.ts) packet slots, with headroom for a Route header, a receive slot, the connection slab (528 bytes per
 * connection), replay windows (64 bytes of each while its connection is idle), stream records, and a pool of 1 KiB
 * chunks for stream buffers and records of sent packets. A connection with more than one path owns a chunk for them
 * until only one path is left; one whose ends have supplied further connection ids owns a second chunk until it ends. A
 * failed assertion traps: the caller sees CORE_FAILED with line and column, and creates a new core.
 *
 * AssemblyScript functions return one value, and objects would need a collector. So there are module-level variables,
 * of three kinds and no other (test/core-as/module-state.test.ts finds each of them):
 *
 *   second return value   an exported `let` named `out…` beside the function that sets it; the caller reads it at once
 *   scratch of a call     shared by the parts of one call of the module; no later call reads it
 *   state of the module   its memory: addresses, free lists, counts
 */
export { abortColumn, abortLine } from './abort';
export * from './aead/one-shot';
export * from './exports/connection';
export * from './exports/module';
export * from './exports/paths';
export * from './exports/streams';
export * from './hash/one-shot';
