/**
 * A byte stream to a port of the device, in the specification's form: create it from a connection, open it, read and
 * write, close or abort.
 *
 * The stream may be used as soon as `open` has been called, without waiting for it: data written before the device has
 * accepted it travels with the opening and saves a round trip. If the device refuses, those calls fail as `open` does.
 *
 * One read, one write and one close may be outstanding at a time. `close` ends our direction and resolves when all of
 * it has been acknowledged; reading continues to the device's own end. `abort` drops everything. The semantics are
 * those of the session's stream; this class adds the state before `open`.
 *
 * From here, or from a tunnel's pump (`platform/node/tcp.ts`), bytes reach the socket in these steps:
 *
 * 1. The session's stream (`runtime/session/`) waits for room.
 * 2. `bindings/` copies the bytes once into linear memory, where `core-as/streams/send.ts` keeps them in the stream's
 *    chunks.
 * 3. `runtime/driver.ts` asks the endpoint for packets, which asks each connection that has any.
 * 4. `core-as/connection/transmit.ts` fills up to 32 packet slots or 192 KiB per call, whichever comes first, as far as
 *    the window (`congestion/`) and the pacer allow: `recovery/ack-policy.ts` writes the ACK, `streams/scheduler.ts`
 *    chooses the bytes, `recovery/mtu.ts` decides when to probe for a larger packet, `packet/protection.ts` encrypts in
 *    place, and `recovery/sent.ts` records what the packet carried.
 * 5. `platform/node/udp.ts` sends views of the slots, and releases each slot when its packet has left.
 *
 * Per packet there is at most one crossing of the wasm boundary, no JavaScript object of our own, and no BigInt.
 */
import { check, checkOptions, type Payload, whole } from '../protocol/arguments.ts';
import { LocalError } from '../protocol/errors/index.ts';
import type { Session, SessionStream, StreamStats } from '../runtime/session/index.ts';

/** A byte stream to a port of the device. Created by `Connection.createStream`. */
export class Stream {
  readonly #session: () => Session;
  #stream: SessionStream | null = null;
  #aborted = false;

  /** For `Connection.createStream`. */
  constructor(session: () => Session) {
    this.#session = session;
  }

  /**
   * Opens the stream; resolves when the device has accepted it. Before that up to 16 KiB can be sent; further writes
   * wait.
   * @param port 0 to 2^32 − 1, the port of a stream listener on the device
   * @param options `weight`: see `setWeight`
   * @throws STOPPED when the port has no listener, a limit is reached or the stream was aborted; NOT_CONNECTED;
   *   INVALID_STATE when opened before
   */
  async open(port: number, options: { weight?: number } = {}): Promise<void> {
    check('the stream port', port, whole(0, 0xffff_ffff));
    checkOptions('a stream', options, { weight: whole(1, 256) });
    if (this.#aborted) throw new LocalError('STOPPED', 'the stream was aborted');
    if (this.#stream !== null) throw new LocalError('INVALID_STATE', 'the stream has already been opened');
    const stream = this.#session().streams.start(port, options);
    this.#stream = stream;
    try {
      await stream.opened;
    } catch (error) {
      // It may be opened again.
      this.#stream = null;
      throw error;
    }
  }

  /**
   * Reads available bytes, waiting for at least one.
   * @param max most bytes to return, 1 to 65536
   * @throws END_OF_FILE after the device's last byte; STOPPED; OPERATION_IN_PROGRESS; INVALID_STATE before open was
   *   called
   */
  async readSome(max?: number): Promise<Uint8Array> {
    return this.#open().readSome(max);
  }

  /**
   * Reads `length` bytes; fewer only at the end of the stream, and then the next read throws END_OF_FILE.
   * @throws as readSome
   */
  async readAll(length: number): Promise<Uint8Array> {
    return this.#open().readAll(length);
  }

  /**
   * Writes all of `data`, text as UTF-8; resolves when it is buffered, not when it has arrived.
   * @throws INVALID_ARGUMENT; CLOSED after close; STOPPED; OPERATION_IN_PROGRESS; INVALID_STATE
   */
  async write(data: Payload): Promise<void> {
    return this.#open().write(data);
  }

  /**
   * Ends our direction; resolves when everything written has been acknowledged.
   * @throws OPERATION_IN_PROGRESS; STOPPED; CLOSED; INVALID_STATE
   */
  async close(): Promise<void> {
    return this.#open().close();
  }

  /** Ends both directions at once; outstanding calls fail with STOPPED. May be called at any time. */
  abort(): void {
    this.#aborted = true;
    this.#stream?.abort();
  }

  /**
   * Sets the stream's share of the connection when several streams have data to send: in proportion to their weights.
   * @param weight 1 to 256; 16 unless `open` was given another
   * @throws LocalError INVALID_ARGUMENT; INVALID_STATE before open
   */
  setWeight(weight: number): void {
    this.#open().setWeight(weight);
  }

  /**
   * The device's direction as a WHATWG stream; do not mix with readSome and readAll.
   * @throws LocalError INVALID_STATE before open
   */
  get readable(): ReadableStream<Uint8Array> {
    return this.#open().readable;
  }

  /** Our direction as a WHATWG stream; do not mix with write and close. @throws LocalError INVALID_STATE before open */
  get writable(): WritableStream<Payload> {
    return this.#open().writable;
  }

  /**
   * Bytes read and written so far, and the data plane's counts: sent, received, held, waiting.
   * @throws LocalError INVALID_STATE before open
   */
  stats(): StreamStats {
    return this.#open().stats();
  }

  #open(): SessionStream {
    if (this.#stream === null)
      throw new LocalError(
        this.#aborted ? 'STOPPED' : 'INVALID_STATE',
        this.#aborted ? 'the stream was aborted' : 'the stream is not open',
      );
    return this.#stream;
  }
}
