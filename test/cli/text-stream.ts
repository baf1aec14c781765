import { Writable } from 'node:stream';

/** A stream, of a terminal or not, that keeps the text written to it. */
export class TextStream extends Writable {
  text = '';
  readonly isTTY: boolean;

  constructor(isTTY = false) {
    super();
    this.isTTY = isTTY;
  }

  override _write(chunk: unknown, _encoding: BufferEncoding, done: () => void): void {
    this.text += String(chunk);
    done();
  }
}
