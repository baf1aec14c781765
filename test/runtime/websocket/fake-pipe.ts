/** A pipe that holds its messages until a test lets them leave, and a clock that a test advances. */
import type { Clock, MessagePipe } from '../../../platform/environment.ts';

export class FakePipe implements MessagePipe {
  readonly index: number;
  readonly address: string;
  readonly port = 443;
  readonly proxy = null;
  readonly messages: Uint8Array[] = [];
  readonly closes: number[] = [];
  readonly #sent: (() => void)[] = [];

  constructor(index = 7, address = '192.0.2.1') {
    this.index = index;
    this.address = address;
  }

  /** Messages that have not left. */
  get held(): number {
    return this.#sent.length;
  }

  send(message: Uint8Array, sent: () => void): void {
    this.messages.push(message);
    this.#sent.push(sent);
  }

  /** This many messages leave. */
  leave(count: number = this.held): void {
    for (const sent of this.#sent.splice(0, count)) sent();
  }

  close(code = 1000): void {
    this.closes.push(code);
  }
}

export class FakeClock implements Pick<Clock, 'now' | 'soon'> {
  time = 0;
  #due: (() => void)[] = [];

  now(): number {
    return this.time;
  }

  soon(run: () => void): void {
    this.#due.push(run);
  }

  /** The running code has finished. */
  turn(): void {
    for (const run of this.#due.splice(0)) run();
  }
}
