/**
 * The part of V8's heap for new objects. Loading and work make it grow to 16 MB (Node 24: 32), and it stays that large
 * while there is work. The objects of a datagram in Node are garbage a moment later. With 2 MB they are collected while
 * still in the processor's caches, and their buffers, 1.5 kB each, before enough of them make V8 mark the whole heap
 * (figures in docs/notebook/bulk.md).
 */
import { setFlagsFromString } from 'node:v8';

/**
 * Keeps its current size for the rest of the process, so call it first. It affects the whole process: for programs, not
 * for libraries.
 */
export function keepYoungGenerationSmall(): void {
  setFlagsFromString('--semi-space-growth-factor=1');
}
