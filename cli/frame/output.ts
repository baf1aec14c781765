/**
 * Where a command writes. Results go to standard output, everything else to standard error, so that a pipe carries only results.
 *
 * With --json each result is one JSON document on a line of its own and notes are left out; without it a person reads text.
 */
import type { Writable } from 'node:stream';
import { blanked, escaped } from '../../protocol/printable.ts';

export interface Streams {
  readonly stdout: Writable & { isTTY?: boolean };
  readonly stderr: Writable & { isTTY?: boolean };
}

export class Output {
  readonly json: boolean;
  readonly #streams: Streams;

  constructor(json: boolean, streams: Streams = process) {
    this.json = json;
    this.#streams = streams;
  }

  /**
   * A result: `document` as JSON with --json, else `text`, a string or lines. Parts of it may come from the other end (names, metadata), so what could
   * rewrite what a terminal shows becomes blanks, and an escape in JSON, see `protocol/printable.ts`; line ends and tabs stay in a string, and not in a line.
   */
  result(document: unknown, text: string | readonly string[]): void {
    this.#streams.stdout.write(`${this.json ? escaped(JSON.stringify(document)) : lines(text)}\n`);
  }

  /** A payload that is text, and a line end: as it came for a pipe; for a terminal without what could rewrite what that shows. */
  payload(text: string): void {
    const { stdout } = this.#streams;
    stdout.write(`${stdout.isTTY === true ? lines(text) : text}\n`);
  }

  /** Whether a person sees standard output. */
  get isTerminal(): boolean {
    return this.#streams.stdout.isTTY === true;
  }

  /** Raw bytes to standard output, for payloads. */
  bytes(data: Uint8Array): void {
    this.#streams.stdout.write(data);
  }

  /** Something a person should know; not shown with --json. */
  note(text: string): void {
    if (!this.json) this.#streams.stderr.write(`${lines(text)}\n`);
  }

  /** A drawing of this program for a person, with its colours: nothing of it may come from the other end. Not shown with --json. */
  drawing(rows: readonly string[]): void {
    if (!this.json) this.#streams.stderr.write(`${rows.join('\n')}\n`);
  }

  /** Something to know by the way, for a person at a terminal alone. A progress bar that is drawn there makes room, and is drawn again below. */
  aside(text: string): void {
    // The bar goes back to where it was saved when it ends: that is below this line now.
    if (this.interactive) this.#streams.stderr.write(`\r\u001b[K${lines(text)}\n\u001b7`);
  }

  /** Something that must be seen in either mode. */
  warn(text: string): void {
    this.#streams.stderr.write(`warning: ${lines(text)}\n`);
  }

  /** Whether a person watches standard output as well. */
  get isScreen(): boolean {
    return this.interactive && this.#streams.stdout.isTTY === true;
  }

  /** Whether a person watches standard error: progress bars and questions are for them alone. */
  get interactive(): boolean {
    return !this.json && this.#streams.stderr.isTTY === true;
  }
}

function lines(text: string | readonly string[]): string {
  const whole = typeof text === 'string' ? text : text.map((line) => line.replace(/[\n\t]/g, ' ')).join('\n');
  return blanked(whole, '\n\t');
}
