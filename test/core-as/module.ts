/**
 * The test build of the core, instantiated by AssemblyScript's loader: internals as functions over addresses, i64 as
 * BigInt.
 */
import { readFileSync } from 'node:fs';
import { instantiateSync } from '@assemblyscript/loader';

type Internal = (...values: (number | bigint)[]) => number;
type Wide = (...values: (number | bigint)[]) => bigint;

const WIDE = ['closesAfter', 'reconstruct', 'readVarint', 'rangeEndFrom', 'rangesCovered', 'scanDown', 'windowFloor'] as const;
const bytes = readFileSync(new URL('../../build/core.test.wasm', import.meta.url));
const compiled = new WebAssembly.Module(bytes);

export interface TestCore {
  call: Record<string, Internal>;
  wide: Record<(typeof WIDE)[number], Wide>;
  /** Value of an exported global. */
  value(name: string): number;
  memory: Uint8Array;
  view: DataView;
}

export function testCore(megabytes = 8, streamSegments = 0): TestCore {
  const { exports } = instantiateSync(compiled);
  const memory = exports.memory as WebAssembly.Memory;
  memory.grow(megabytes * 16 - memory.buffer.byteLength / 65_536);
  const call = exports as unknown as Record<string, Internal>;
  if (call.init?.(4, 64, memory.buffer.byteLength, streamSegments, 1_452, 0) !== 0) throw new Error('init failed');
  return {
    call,
    wide: exports as unknown as TestCore['wide'],
    value: (name) => Number((exports[name] as WebAssembly.Global).value),
    memory: new Uint8Array(memory.buffer),
    view: new DataView(memory.buffer),
  };
}
