/**
 * One instance of the core: its memory, its packet slots and its connections.
 *
 * Views of the memory are made once and never detach. Nothing here allocates per packet.
 */
import { type Aead, OneShotAead } from './aead.ts';
import { Status } from './codes.generated.ts';
import { CoreConnection } from './connection.ts';
import type { CoreExports } from './core-exports.ts';
import { type CoreInternals, MASK_KEYS_LENGTH, MAX_BATCH, Trap } from './core-internals.ts';
import { LocalError } from './error.ts';
import { CoreHash, type Hash } from './hash.ts';
import { createCore, DEFAULT_CONNECTIONS, loadCore } from './module.ts';
import type { CoreConnectionOptions, CoreOptions, WasmSource } from './options.ts';
import { writeParameters } from './parameters.ts';

/** Result fields in use; the core has room for more (core-as/memory/layout.ts). */
const RESULTS = 32;
/** Largest number of segments that the core can express: more than any memory. */
const MAX_SEGMENTS = 0xffff_ffff;

/** Statistics of a whole core. */
export interface CoreStats {
  /** First unused address of linear memory; bytes of linear memory. */
  heapTop: number;
  memory: number;
  /** Free 1 KiB chunks and packet slots. */
  freeChunks: number;
  freeSlots: number;
  connections: number;
  byteStreams: number;
  messagesOut: number;
  messagesIn: number;
}

/** One instance of the data plane. Two instances share nothing. */
export class Core {
  /** One-shot cipher, for handshakes. */
  readonly aead: Aead;
  /** SHA-256 and HMAC, for handshakes. */
  readonly hash: Hash;
  /** All of linear memory. */
  readonly buffer: Uint8Array;
  /** Filled by `CoreConnection.transmit`: start of each packet in `buffer` (Route header included), and its length. */
  readonly packetOffsets: Uint32Array;
  readonly packetLengths: Uint32Array;
  /** Byte streams and messages that one peer can hold open at a time: announce no more (`DataParameters`). */
  readonly maxPeerStreams: number;
  readonly maxPeerMessages: number;
  /** Most packets in use at a time: written by `CoreConnection.transmit` and not released. */
  readonly packetSlots: number;
  private readonly internals: CoreInternals;

  /**
   * Loads the module.
   *
   * @throws LocalError NOT_IMPLEMENTED without WebAssembly SIMD or where a Content-Security-Policy forbids it,
   * OUT_OF_MEMORY, INVALID_ARGUMENT, INVALID_STATE for another ABI version
   */
  static async load(options: CoreOptions = {}, source: WasmSource = 'embedded'): Promise<Core> {
    return new Core(await loadCore(options, source), options);
  }

  /**
   * Loads the embedded module synchronously: the thread blocks while it compiles, so prefer `load` in a page. Errors as
   * for `load`.
   */
  static create(options: CoreOptions = {}): Core {
    return new Core(createCore(options), options);
  }

  private constructor(exports: CoreExports, { connections = DEFAULT_CONNECTIONS }: CoreOptions) {
    const memory = exports.memory.buffer;
    const transferAt = exports.transferAt();
    this.buffer = new Uint8Array(memory);
    this.packetOffsets = new Uint32Array(memory, exports.packetOffsetsAt(), MAX_BATCH);
    this.packetLengths = new Uint32Array(memory, exports.packetLengthsAt(), MAX_BATCH);
    this.aead = new OneShotAead(exports, this.buffer);
    this.hash = new CoreHash(exports, this.buffer);
    this.maxPeerStreams = exports.maxPeerStreams();
    this.maxPeerMessages = exports.maxPeerMessages();
    this.internals = {
      exports,
      trap: new Trap(exports),
      buffer: this.buffer,
      transfer: this.buffer.subarray(transferAt, transferAt + exports.transferSize()),
      transferAt,
      receiveAt: exports.receiveAt(),
      receiveSize: exports.receiveSize(),
      results: new Float64Array(memory, exports.resultsAt(), RESULTS),
      maskKeys: new Uint8Array(MASK_KEYS_LENGTH * connections),
      lastPath: 0,
    };
    this.packetSlots = this.stats().freeSlots;
  }

  /**
   * Bytes of a new peer that can wait to be read: announce no more (`DataParameters`). The least while bytes that
   * no application reads fill half of their memory.
   */
  get maxFirstData(): number {
    return this.internals.exports.maxFirstData();
  }

  /**
   * Whether a trap happened: then every call on this core and its connections throws LocalError CORE_FAILED. Make a new
   * one.
   */
  get failed(): boolean {
    return this.internals.trap.failure !== null;
  }

  /**
   * Opens a connection after its handshake.
   *
   * @throws LocalError OUT_OF_MEMORY when no slot is left, INVALID_ARGUMENT for a value of the wrong length
   */
  open(options: CoreConnectionOptions): CoreConnection {
    const { exports, trap, transfer, maskKeys } = this.internals;
    trap.check();
    writeParameters(transfer, options);
    let status: number;
    try {
      status = exports.connectionOpen();
    } catch (error) {
      throw trap.caught(error);
    }
    if (status === Status.OUT_OF_MEMORY) throw new LocalError('OUT_OF_MEMORY', 'no connection slot is left');
    if (status !== Status.OK) throw new LocalError('INVALID_ARGUMENT', `the core refuses to open the connection: status ${status}`);
    const handle = exports.connectionHandle();
    maskKeys.set(options.sendMaskKey, handle * MASK_KEYS_LENGTH);
    maskKeys.set(options.receiveMaskKey, handle * MASK_KEYS_LENGTH + MASK_KEYS_LENGTH / 2);
    return new CoreConnection(this.internals, handle, options.remote.maxUdpPayload);
  }

  /** Frees the packet slot of the packet that starts at `offset` of `buffer`. */
  release(offset: number): void {
    if (!this.failed) this.internals.exports.releasePacket(offset);
  }

  /**
   * Changes `CoreOptions.streamSegments`; 0: as memory allows. Bytes buffered above it stay until they drain, and
   * streams wait as long. Peers keep their announced credit; bytes without room are accepted when they come again.
   */
  limitStreamSegments(segments: number): void {
    if (!this.failed) this.internals.exports.limitStreamSegments(Math.min(segments, MAX_SEGMENTS));
  }

  stats(): CoreStats {
    const { exports, trap, results } = this.internals;
    trap.check();
    exports.moduleStats();
    return {
      heapTop: result(results, 0),
      memory: this.buffer.length,
      freeChunks: result(results, 1),
      freeSlots: result(results, 2),
      connections: result(results, 3),
      byteStreams: result(results, 4),
      messagesOut: result(results, 5),
      messagesIn: result(results, 6),
    };
  }

  /** Makes the core trap, to test the reaction of the embedding program. Throws CORE_FAILED. */
  failForTest(): never {
    try {
      this.internals.exports.trap();
    } catch (error) {
      throw this.internals.trap.caught(error);
    }
    throw new LocalError('CORE_FAILED', 'the core did not stop');
  }
}

function result(results: Float64Array, index: number): number {
  return results[index] ?? 0;
}
