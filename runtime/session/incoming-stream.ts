/**
 * A byte stream that the peer wants to open, until the application accepts or refuses it; after 30 s the connection
 * resets it.
 */
import { check, whole } from '../../protocol/arguments.ts';
import { LocalError, StreamCode } from '../../protocol/errors/index.ts';
import type { Stream } from './stream.ts';

/** The two answers, implemented by the session. */
export interface IncomingAnswers {
  accept(): Stream;
  refuse(code: number): void;
}

/** An offered byte stream: answer it once. */
export class IncomingStream {
  /** Port that the peer named, 0 … 2^32 - 1. */
  readonly port: number;
  readonly #answers: IncomingAnswers;
  #state: 'waiting' | 'decided' | 'gone' = 'waiting';

  constructor(port: number, answers: IncomingAnswers) {
    this.port = port;
    this.#answers = answers;
  }

  /** Still waiting for an answer. */
  get isWaiting(): boolean {
    return this.#state === 'waiting';
  }

  /**
   * Accepts: the peer's open resolves.
   * @throws INVALID_STATE when answered before; STOPPED when the peer gave up or the wait timed out
   */
  accept(): Stream {
    if (this.#state === 'gone') throw new LocalError('STOPPED', 'the stream is no longer offered');
    if (this.#state === 'decided') throw new LocalError('INVALID_STATE', 'the stream was accepted or refused before');
    this.#state = 'decided';
    return this.#answers.accept();
  }

  /**
   * Refuses: the peer's open fails with STOPPED. Does nothing when answered before.
   * @param code stream error code on the wire
   * @throws LocalError INVALID_ARGUMENT
   */
  refuse(code: number = StreamCode.STREAM_REFUSED): void {
    check('the code of a refusal', code, whole(0, 0xffff_ffff));
    if (this.#state !== 'waiting') return;
    this.#state = 'decided';
    this.#answers.refuse(code);
  }

  /** For the session: the offer is over. */
  withdraw(): void {
    if (this.#state === 'waiting') this.#state = 'gone';
  }
}
