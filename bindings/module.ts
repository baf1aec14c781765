/**
 * Loads and instantiates the module.
 *
 *   1. Get the bytes: embedded base64, a URL, a response, a buffer, or a compiled module.
 *   2. Instantiate. The module has no imports, and its exports are called directly. AssemblyScript's loader would wrap
 *      each in a closure, and read the global `Response`, which makes Node load `fetch`: 3 MB of an idle device.
 *   3. Check the ABI version, grow the memory to its final size, lay it out.
 *
 * Memory grows exactly once, before any view of it exists, so views never detach.
 */
import { ABI_VERSION, Status } from './codes.generated.ts';
import type { CoreExports } from './core-exports.ts';
import { embedded } from './embedded.ts';
import { LocalError } from './error.ts';
import type { CoreOptions, WasmSource } from './options.ts';

const PAGE = 65_536;
/** Default number of connection slots. */
export const DEFAULT_CONNECTIONS = 64;
export const DEFAULTS = {
  connections: DEFAULT_CONNECTIONS,
  memory: 32 * 1_024 * 1_024,
  streamSegments: 0,
  maxPacketSize: 1_452,
  connectionWindow: 16 * 1_024 * 1_024,
};
/** Memory per stream record by default, bytes; smallest number of records. */
export const MEMORY_PER_STREAM = 4_096;
const MIN_STREAMS = 64;

let compiled: WebAssembly.Module | undefined;

/** Returns an instance, laid out. Compiles off the main thread where the platform can. */
export async function loadCore(options: CoreOptions, source: WasmSource): Promise<CoreExports> {
  try {
    return prepare(await WebAssembly.instantiate(await moduleOf(source)), options);
  } catch (error) {
    throw explained(error);
  }
}

/** The same synchronously, with the embedded module. */
export function createCore(options: CoreOptions): CoreExports {
  try {
    compiled ??= new WebAssembly.Module(embedded());
    return prepare(new WebAssembly.Instance(compiled), options);
  } catch (error) {
    throw explained(error);
  }
}

/**
 * Recognizes a response by its methods: accessing the global `Response` makes Node load all of fetch, 3 MB and tens of
 * milliseconds.
 */
async function moduleOf(source: WasmSource): Promise<WebAssembly.Module> {
  if (source instanceof WebAssembly.Module) return source;
  if (source instanceof URL) return WebAssembly.compileStreaming(fetched(source));
  if (source !== 'embedded') return 'arrayBuffer' in source ? WebAssembly.compileStreaming(source) : WebAssembly.compile(source);
  compiled ??= await WebAssembly.compile(embedded());
  return compiled;
}

async function fetched(url: URL): Promise<Response> {
  if (url.protocol === 'file:') throw new LocalError('INVALID_ARGUMENT', `${url} is a file: read it and give the bytes`);
  const response = await fetch(url);
  if (!response.ok) throw new LocalError('INVALID_ARGUMENT', `${url} answered ${response.status}, not with core.wasm`);
  return response;
}

function prepare(instance: WebAssembly.Instance, options: CoreOptions): CoreExports {
  const exports = instance.exports as CoreExports;
  if (exports.abiVersion() !== ABI_VERSION) {
    throw new LocalError(
      'INVALID_STATE',
      `core.wasm has ABI version ${exports.abiVersion()}, these bindings need ${ABI_VERSION}: rebuild or reload both`,
    );
  }
  const { connections, memory, streamSegments, maxPacketSize, connectionWindow, ...other } = { ...DEFAULTS, ...options };
  const streams = other.streams ?? Math.max(MIN_STREAMS, Math.floor(memory / MEMORY_PER_STREAM));
  const pages = Math.ceil(memory / PAGE);
  const missing = pages - exports.memory.buffer.byteLength / PAGE;
  try {
    if (missing > 0) exports.memory.grow(missing);
  } catch (error) {
    throw new LocalError('OUT_OF_MEMORY', `there are no ${memory} bytes of memory for the core: ${(error as Error).message}`, {
      cause: error,
    });
  }
  const status = exports.init(connections, streams, exports.memory.buffer.byteLength, streamSegments, maxPacketSize, connectionWindow);
  if (status === Status.OUT_OF_MEMORY)
    throw new LocalError('OUT_OF_MEMORY', `${memory} bytes are too few for ${connections} connections and ${streams} streams`);
  if (status !== Status.OK)
    throw new LocalError('INVALID_ARGUMENT', 'core options: connections ≥ 1, streams ≥ 16, maxPacketSize 1200 to 65000');
  return exports;
}

/**
 * Without SIMD, or where a page's policy forbids it, the runtime refuses to compile. Without address space it refuses
 * to instantiate: on 64 bits V8 reserves 8 GiB and guard pages for each memory, so that accesses need no check. Without
 * memory it refuses to grow.
 */
function explained(error: unknown): unknown {
  if (error instanceof LocalError) return error;
  if (error instanceof WebAssembly.CompileError) {
    const needs = "WebAssembly with SIMD, and in a page 'wasm-unsafe-eval' where there is a Content-Security-Policy";
    return new LocalError('NOT_IMPLEMENTED', `this runtime cannot run the core, which needs ${needs}: ${error.message}`, { cause: error });
  }
  if (error instanceof RangeError) {
    const remedy = 'raise the limit (ulimit -v, LimitAS= of a service), or set NODE_OPTIONS=--disable-wasm-trap-handler';
    const problem = `the core needs 10 GiB of address space, which are reserved and not used: ${remedy}`;
    return new LocalError('OUT_OF_MEMORY', `${problem}: ${error.message}`, { cause: error });
  }
  return error;
}
