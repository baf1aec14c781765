/**
 * The part of V8's heap where objects begin. Loading and work make it grow to 16 MB (Node 24: 32), and there it stays while there is work. What a
 * datagram needs in Node is garbage a moment later: with 2 MB it is collected while it is still in the processor's caches, and its buffers, 1.5 kB
 * each, before they add up to what makes V8 mark the whole heap (figures in docs/notebook/bulk.md).
 */
import { setFlagsFromString } from 'node:v8';

/** Keeps it as it is now for the life of the process, so call it first. It changes the whole process: for programs, not for libraries. */
export function keepYoungGenerationSmall(): void {
  setFlagsFromString('--semi-space-growth-factor=1');
}
