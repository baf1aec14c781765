/**
 * The output of a command. Results go to standard output, everything else to standard error, so that a pipe carries
 * only results.
 *
 * With --json each result is one JSON document on its own line and notes are left out; otherwise a person reads text.
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
   * Prints a result: `document` as JSON with --json, else `text`, a line or lines. Parts of it may come from the peer
   * (names, metadata), so control characters become blanks, and escapes in JSON, see `protocol/printable.ts`: no part
   * begins a line.
   */
  result(document: unknown, text: string | readonly string[]): void {
    this.#streams.stdout.write(`${this.json ? escaped(JSON.stringify(document)) : lines(text)}\n`);
  }

  /** Prints a text payload and a line end: unchanged to a pipe; to a terminal without control characters. */
  payload(text: string): void {
    const { stdout } = this.#streams;
    stdout.write(`${stdout.isTTY === true ? blanked(text, '\n\t') : text}\n`);
  }

  /** Whether a person sees standard output. */
  get isTerminal(): boolean {
    return this.#streams.stdout.isTTY === true;
  }

  /** Writes raw bytes to standard output, for payloads. */
  bytes(data: Uint8Array): void {
    this.#streams.stdout.write(data);
  }

  /** Prints a note for a person, a line or lines; not with --json. */
  note(text: string | readonly string[]): void {
    if (!this.json) this.#streams.stderr.write(`${lines(text)}\n`);
  }

  /** Prints a drawing of this program with its colours: no part may come from the peer. Not with --json. */
  drawing(rows: readonly string[]): void {
    if (!this.json) this.#streams.stderr.write(`${rows.join('\n')}\n`);
  }

  /** Prints a remark for a person at a terminal only. A progress bar moves below it. */
  aside(text: string): void {
    // When the bar ends, it returns to its saved position, which is now below this line.
    if (this.interactive) this.#streams.stderr.write(`\r\u001b[K${lines(text)}\n\u001b7`);
  }

  /** Prints a warning, in either mode. */
  warn(text: string): void {
    this.#streams.stderr.write(`warning: ${lines(text)}\n`);
  }

  /** Whether a person also watches standard output. */
  get isScreen(): boolean {
    return this.interactive && this.#streams.stdout.isTTY === true;
  }

  /** Whether a person watches standard error: only then are there progress bars and questions. */
  get interactive(): boolean {
    return !this.json && this.#streams.stderr.isTTY === true;
  }
}

function lines(text: string | readonly string[]): string {
  return [text]
    .flat()
    .map((line) => blanked(line))
    .join('\n');
}
