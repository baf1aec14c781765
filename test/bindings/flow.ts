/**
 * A bulk flow through a line, for tests of congestion control: endless zeros in one byte stream, counted at the
 * receiver.
 */
import { type CongestionControl, EventKind } from '../../bindings/index.ts';
import { type Line, PARAMETERS, Pair, type PairOptions } from './pair.ts';

const MEGABYTE = 1_048_576;
const PIECE = new Uint8Array(65_536);

export interface FlowOptions extends Omit<PairOptions, 'line'> {
  congestion: CongestionControl;
  line: Line;
  /** Round-trip time without a queue, ms. */
  rtt: number;
  /** Random loss in either direction. */
  loss?: number;
}

export class Flow {
  readonly pair: Pair;
  /** Bytes read by the receiver. */
  received = 0;
  #open = true;

  constructor({ congestion, line, rtt, loss = 0, ...options }: FlowOptions) {
    this.pair = new Pair({
      link: { delay: rtt / 2, loss },
      line,
      granularity: 1,
      memory: 32 * MEGABYTE,
      parameters: { ...PARAMETERS, initialMaxData: 8 * MEGABYTE, initialMaxStreamData: 3.7 * MEGABYTE },
      ...options,
      initiator: { congestion },
    });
    const { initiator, responder } = this.pair;
    const id = initiator.connection.streams.open();
    const target = new Uint8Array(65_536);
    const write = () => {
      while (this.#open && initiator.connection.streams.write(id, PIECE) === PIECE.length);
    };
    initiator.onEvent = ({ kind }) => {
      if (kind === EventKind.STREAM_WRITABLE) write();
    };
    responder.onEvent = ({ kind, stream }) => {
      if (kind !== EventKind.STREAM_READABLE) return;
      for (let length = 1; length > 0; ) {
        length = responder.connection.streams.read(stream, target);
        if (length > 0) this.received += length;
      }
    };
    this.resume = () => {
      this.#open = true;
      write();
    };
    write();
  }

  /** Resumes writing after `pause`. */
  resume: () => void;

  pause(): void {
    this.#open = false;
  }

  get stats() {
    return this.pair.initiator.connection.stats();
  }

  /** Mbit/s of application bytes over the next `time` ms. */
  measure(time: number): number {
    const before = this.received;
    this.pair.run(time);
    return ((this.received - before) * 8) / time / 1_000;
  }
}
